#include "backends/cpu/quantized/wide_dot.h"

#include <algorithm>
#include <iterator>

#include "backends/cpu/gemm/pack.h"
#include "base/checked.h"
#include "quant/block_format.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

/// Multiply-adds that are worth a thread of their own: a few microseconds.
constexpr std::int64_t worth_a_worker = 1 << 17;

std::int64_t grain_for(std::int64_t operations) {
  return std::max<std::int64_t>(1, worth_a_worker / std::max<std::int64_t>(1, operations));
}

/// Where things lie in the workspace, in floats: the packed rows of x, then for each worker what it needs.
struct WideDotPlaces {
  template <class T>
  WideDotPlaces(const WideDotArgs& args, const PackedB<T>& b, int threads) {
    const std::int64_t k = args.k, m = args.rows.rows();
    const auto left = checked_mul<std::int64_t>(b.kernel().max_rows, k),
               sums = checked_mul<std::int64_t>(args.rows.largest(), b.kernel().panel_cols);
    const auto packed = checked_mul(m, k);
    if (!left || !sums || !packed) fail("a product of {} rows of {} values: too large", m, k);
    rows = *packed, worker = std::max(*left, *sums);
    const auto workers = checked_mul<std::int64_t>(worker, threads), floats = workers ? checked_add(rows, *workers) : std::nullopt;
    const auto all = floats ? checked_mul<std::int64_t>(*floats, sizeof(float)) : std::nullopt;
    if (!all) fail("a product of {} rows of {} values: too large", m, k);
    bytes = *all;
  }
  std::int64_t rows = 0, worker = 0, bytes = 0;
};

template <class T>
class WideProduct {
 public:
  WideProduct(const WideDotArgs& args, const PackedB<T>& b, ThreadPool& pool)
      : args_(args),
        b_(b),
        kernel_(b.kernel()),
        pool_(pool),
        places_(args, b, pool.size()),
        left_(reinterpret_cast<float*>(args.workspace)),
        k_(args.k) {}

  void run() {
    pack_left();
    const std::int64_t groups = std::ssize(args_.rows.groups), operations = args_.rows.rows() / groups * kernel_.panel_cols * k_;
    // The groups of one panel follow each other, so that each thread has its part of all of them.
    pool_.parallel_for(b_.panels() * groups, grain_for(operations), [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t i = begin; i < end; ++i)
        multiply(args_.rows.groups[static_cast<std::size_t>(i % groups)], i / groups, scratch_of(worker));
    });
  }

 private:
  float* scratch_of(int worker) const { return left_ + places_.rows + worker * places_.worker; }

  void pack_left() {
    const std::vector<RowTile> tiles = tiles_of(args_.rows, kernel_.max_rows);
    pool_.parallel_for(std::ssize(tiles), grain_for(kernel_.max_rows * k_), [&](std::int64_t begin, std::int64_t end, int worker) {
      float* const scratch = scratch_of(worker);
      for (std::int64_t i = begin; i < end; ++i) {
        const RowTile& tile = tiles[static_cast<std::size_t>(i)];
        const float* const x = args_.rows.gathered(args_.x, k_, tile.begin, tile.count, scratch);
        pack_panel<float>({x, k_, 1}, tile.count, k_, left_ + tile.begin * k_, tile.count);
      }
    });
  }

  /// The rows of a group with one panel of their weights, of which a pass stays in the caches.
  void multiply(const RowGroups::Group& group, std::int64_t panel, float* sums) const {
    const std::int64_t cols = kernel_.panel_cols, most = kernel_.max_rows, pass = kernel_.longest_pass;
    for (std::int64_t k0 = 0; k0 < k_; k0 += pass) {
      const std::int64_t depth = std::min(pass, k_ - k0);
      for (std::int64_t row = 0; row < group.count; row += most) {
        const std::int64_t rows = std::min(most, group.count - row);
        kernel_.tiles[rows](depth, left_ + (group.begin + row) * k_ + k0 * rows, b_.panel(group.matrix, panel) + k0 * cols, nullptr,
                            sums + row * cols, cols, cols, k0 > 0);
      }
    }
    const std::int64_t width = std::min(cols, args_.n - panel * cols);
    for (std::int64_t row = 0; row < group.count; ++row)
      std::copy_n(sums + row * cols, width, args_.c + args_.rows.row(group.begin + row) * args_.n + panel * cols);
  }

  const WideDotArgs& args_;
  const PackedB<T>& b_;
  const MicroKernel<T>& kernel_;
  ThreadPool& pool_;
  WideDotPlaces places_;
  float* left_;
  std::int64_t k_;
};

/// Calls `body` with the kernel of the panels: numbers of half precision are floats there where no kernel widens them.
auto with_kernel(std::string_view type, CpuLevel level, const auto& body) {
  if (type == "F16" && has_micro_kernel<F16>(level)) return body(micro_kernel<F16>(level));
  if (type == "BF16") return body(micro_kernel<Bf16Weight>(level));
  return body(micro_kernel<float>(level));
}

}  // namespace

bool has_wide_panels(std::string_view type) { return type == "F32" || type == "F16" || type == "BF16"; }

WidePanels wide_panels(std::string_view type, const BlockWeights& weights, CpuLevel level, std::byte* memory) {
  return with_kernel(type, level, [&]<class T>(const MicroKernel<T>& kernel) {
    return WidePanels(PackedB<T>(weights.matrices, weights.k, weights.n, kernel, memory));
  });
}

std::int64_t wide_panel_bytes(std::string_view type, const BlockWeights& weights, CpuLevel level) {
  return with_kernel(type, level, [&]<class T>(const MicroKernel<T>& kernel) {
    return PackedB<T>::bytes_of(weights.matrices, weights.k, weights.n, kernel);
  });
}

void pack_wide(std::string_view type, const BlockWeights& weights, WidePanels& panels, ThreadPool& pool) {
  std::vector<float> floats;
  const auto* numbers = weights.blocks;
  if (type == "F16" && std::holds_alternative<PackedB<float>>(panels)) {
    floats.resize(static_cast<std::size_t>(weights.matrices * weights.n * weights.k));
    find_block_format("F16")->decode(weights.blocks, floats.data(), std::ssize(floats));
    numbers = reinterpret_cast<const std::byte*>(floats.data());
  }
  const auto pack = [&]<class T>(PackedB<T>& b) {
    b.pack({reinterpret_cast<const T*>(numbers), 1, weights.k, weights.n * weights.k}, pool);
  };
  std::visit(pack, panels);
}

std::size_t wide_dot_workspace(const WideDotArgs& args, int threads) {
  return std::visit([&](const auto& b) { return static_cast<std::size_t>(WideDotPlaces(args, b, threads).bytes); }, *args.panels);
}

void wide_dot(const WideDotArgs& args, ThreadPool& pool) {
  if (args.rows.rows() == 0 || args.n == 0) return;
  std::visit([&](const auto& b) { WideProduct(args, b, pool).run(); }, *args.panels);
}

}  // namespace rlx::cpu
