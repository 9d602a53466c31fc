#include "backends/cpu/quantised/wide_dot.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "backends/cpu/gemm/pack.h"
#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

/// Depth that is decoded at a time, so that a panel of it stays in the caches: whole blocks of every type.
constexpr std::int64_t depth_of_pass = 2048;

/// Multiply-adds that are worth a thread of their own: a few microseconds.
constexpr std::int64_t worth_a_worker = 1 << 17;

std::int64_t grain_for(std::int64_t operations) {
  return std::max<std::int64_t>(1, worth_a_worker / std::max<std::int64_t>(1, operations));
}

/// Panels as they lie.
template <class T>
struct KeptPanels {
  explicit KeptPanels(const PackedB<T>& kept) : kernel(kept.kernel()), panels(kept.panels()), b(kept) {}
  const Packed<T>* panel(std::int64_t matrix, std::int64_t i, std::int64_t k0, std::int64_t, float*) const {
    return b.panel(matrix, i) + k0 * kernel.panel_cols;
  }
  const MicroKernel<T>& kernel;
  std::int64_t panels;
  const PackedB<T>& b;
};

/// Panels that are made of blocks when they are asked for.
struct DecodedPanels {
  explicit DecodedPanels(const WideDotArgs& args)
      : kernel(micro_kernel<float>(args.level)),
        panels((args.weights.n + kernel.panel_cols - 1) / kernel.panel_cols),
        format(*args.format),
        weights(args.weights) {}
  const float* panel(std::int64_t matrix, std::int64_t i, std::int64_t k0, std::int64_t depth, float* scratch) const {
    const std::int64_t column = i * kernel.panel_cols, width = std::min<std::int64_t>(kernel.panel_cols, weights.n - column);
    float* const packed = scratch + kernel.panel_cols * depth;
    for (std::int64_t c = 0; c < width; ++c)
      format.decode(weights.row(matrix, column + c) + k0 / format.values * format.bytes, scratch + c * depth, depth);
    pack_panel<float>({scratch, depth, 1}, width, depth, packed, kernel.panel_cols);
    return packed;
  }
  const MicroKernel<float>& kernel;
  std::int64_t panels;
  const BlockFormat& format;
  const BlockWeights& weights;
};

template <class Visit>
auto with_panels(const WideDotArgs& args, const Visit& visit) {
  if (!args.panels) return visit(DecodedPanels(args));
  return std::visit([&]<class T>(const PackedB<T>& kept) { return visit(KeptPanels<T>(kept)); }, *args.panels);
}

/// Where things lie in the workspace, in floats: the packed rows of x, then for each worker what it needs.
struct WideDotPlaces {
  template <class Panels>
  WideDotPlaces(const WideDotArgs& args, const Panels& source, int threads) {
    const std::int64_t k = args.weights.k, m = args.rows.rows(), cols = source.kernel.panel_cols;
    const auto left = checked_mul<std::int64_t>(source.kernel.max_rows, k), sums = checked_mul(args.rows.largest(), cols);
    const auto right = sums ? checked_add(*sums, 2 * cols * std::min(k, depth_of_pass)) : std::nullopt;
    const auto packed = checked_mul(m, k);
    if (!left || !right || !packed) fail("a product of {} rows of {} values: too large", m, k);
    rows = *packed, worker = std::max(*left, *right);
    const auto workers = checked_mul<std::int64_t>(worker, threads), floats = workers ? checked_add(rows, *workers) : std::nullopt;
    const auto all = floats ? checked_mul<std::int64_t>(*floats, sizeof(float)) : std::nullopt;
    if (!all) fail("a product of {} rows of {} values: too large", m, k);
    bytes = *all;
  }
  std::int64_t rows = 0, worker = 0, bytes = 0;
};

/// The nearest products of 8-bit codes with a scale for each 32 neighbours, as the op block_dot says.
void round_row(const float* from, std::int64_t count, float* to) {
  constexpr std::int64_t group = 32;
  for (std::int64_t i = 0; i < count; i += group) {
    float most = 0;
    for (std::int64_t j = i; j < i + group; ++j) most = std::abs(from[j]) > most || std::isnan(from[j]) ? std::abs(from[j]) : most;
    const float inverse = most > 0 ? 127 / most : 0, scale = most / 127;
    for (std::int64_t j = i; j < i + group; ++j) to[j] = std::nearbyint(from[j] * inverse) * scale;
  }
}

template <class Panels>
class WideProduct {
 public:
  WideProduct(const WideDotArgs& args, const Panels& source, ThreadPool& pool)
      : args_(args),
        source_(source),
        pool_(pool),
        places_(args, source, pool.size()),
        left_(reinterpret_cast<float*>(args.workspace)),
        k_(args.weights.k) {}

  void run() {
    pack_left();
    const std::int64_t groups = std::ssize(args_.rows.groups), operations = args_.rows.rows() / groups * source_.kernel.panel_cols * k_;
    // The groups of one panel follow each other, so that each thread has its part of all of them.
    pool_.parallel_for(source_.panels * groups, grain_for(operations), [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t i = begin; i < end; ++i)
        multiply(args_.rows.groups[static_cast<std::size_t>(i % groups)], i / groups, scratch_of(worker));
    });
  }

 private:
  float* scratch_of(int worker) const { return left_ + places_.rows + worker * places_.worker; }

  void pack_left() {
    const std::vector<RowTile> tiles = tiles_of(args_.rows, source_.kernel.max_rows);
    pool_.parallel_for(std::ssize(tiles), grain_for(source_.kernel.max_rows * k_), [&](std::int64_t begin, std::int64_t end, int worker) {
      float* const scratch = scratch_of(worker);
      for (std::int64_t i = begin; i < end; ++i) {
        const RowTile& tile = tiles[static_cast<std::size_t>(i)];
        const float* x = args_.rows.gathered(args_.x, k_, tile.begin, tile.count, scratch);
        if (args_.rounds) {
          for (std::int64_t r = 0; r < tile.count; ++r) round_row(x + r * k_, k_, scratch + r * k_);
          x = scratch;
        }
        pack_panel<float>({x, k_, 1}, tile.count, k_, left_ + tile.begin * k_, tile.count);
      }
    });
  }

  /// The rows of a group with one panel of their weights.
  void multiply(const RowGroups::Group& group, std::int64_t panel, float* scratch) const {
    const auto& kernel = source_.kernel;
    const std::int64_t cols = kernel.panel_cols, most = kernel.max_rows;
    float *const sums = scratch, *const room = scratch + args_.rows.largest() * cols;
    for (std::int64_t k0 = 0; k0 < k_; k0 += depth_of_pass) {
      const std::int64_t depth = std::min(depth_of_pass, k_ - k0);
      const auto* const b = source_.panel(group.matrix, panel, k0, depth, room);
      for (std::int64_t row = 0; row < group.count; row += most) {
        const std::int64_t rows = std::min(most, group.count - row);
        kernel.tiles[rows](depth, left_ + (group.begin + row) * k_ + k0 * rows, b, nullptr, sums + row * cols, cols, cols, k0 > 0);
      }
    }
    const std::int64_t width = std::min(cols, args_.weights.n - panel * cols);
    for (std::int64_t row = 0; row < group.count; ++row)
      std::copy_n(sums + row * cols, width, args_.c + args_.rows.row(group.begin + row) * args_.weights.n + panel * cols);
  }

  const WideDotArgs& args_;
  const Panels& source_;
  ThreadPool& pool_;
  WideDotPlaces places_;
  float* left_;
  std::int64_t k_;
};

template <class T>
WidePanels packed(const BlockWeights& weights, CpuLevel level, ThreadPool& pool) {
  const Matrix<T> b{reinterpret_cast<const T*>(weights.blocks), 1, weights.k, weights.n * weights.k};
  return pack_b(b, weights.matrices, weights.k, weights.n, pool, micro_kernel<T>(level));
}

}  // namespace

bool has_wide_panels(const BlockFormat& format, CpuLevel level) {
  return format.name == "F32" || (format.name == "F16" && has_micro_kernel<F16>(level)) ||
         (format.name == "BF16" && has_micro_kernel<Bf16Weight>(level));
}

WidePanels make_wide_panels(const BlockFormat& format, const BlockWeights& weights, CpuLevel level, ThreadPool& pool) {
  if (format.name == "F16") return packed<F16>(weights, level, pool);
  if (format.name == "BF16") return packed<Bf16Weight>(weights, level, pool);
  return packed<float>(weights, level, pool);
}

std::size_t wide_dot_workspace(const WideDotArgs& args, int threads) {
  return with_panels(args, [&](const auto& source) { return static_cast<std::size_t>(WideDotPlaces(args, source, threads).bytes); });
}

void wide_dot(const WideDotArgs& args, ThreadPool& pool) {
  if (args.rows.rows() == 0 || args.weights.n == 0) return;
  with_panels(args, [&](const auto& source) { WideProduct(args, source, pool).run(); });
}

}  // namespace rlx::cpu
