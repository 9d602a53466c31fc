#include "backends/cpu/gemm/tune.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/gemm/gemm_plan.h"
#include "backends/cpu/gemm/transposed.h"
#include "base/fastest_seconds.h"

namespace rlx::cpu {
namespace {

/// Calls `with` for the arguments that are multiplied as they are written.
template <class T, class With>
auto as_written(const GemmArgs<T>& args, bool is_transposed, With with) {
  if constexpr (can_transpose<T>)
    if (is_transposed) return with(Transposed<T>(args).args());
  return with(args);
}

template <class T>
ProductChoice choice_of(const GemmArgs<T>& args, bool is_transposed, int threads) {
  return as_written(args, is_transposed, [&](const GemmArgs<T>& written) {
    return ProductChoice{is_transposed, choose_blocking(product_size(written), cpu_features().l2_bytes, threads)};
  });
}

template <class T>
ProductSize size_of(const GemmArgs<T>& args, bool is_transposed) {
  return as_written(args, is_transposed, [](const GemmArgs<T>& written) { return product_size(written); });
}

std::int64_t most_row_blocks(const ProductSize& size) { return count_steps(size.m, size.row_step); }

/// Choices that differ from one by one number.
std::vector<ProductChoice> neighbours(const ProductChoice& from, const ProductSize& size, int threads) {
  std::vector<ProductChoice> all;
  const auto add = [&](std::int64_t Blocking::* number, std::int64_t value, std::int64_t most) {
    ProductChoice next = from;
    next.cut.*number = std::clamp<std::int64_t>(value, 1, most);
    if (next.cut.*number != from.cut.*number) all.push_back(next);
  };
  const auto& [rows, columns, depth, grain] = from.cut;
  for (const std::int64_t blocks : {rows * 2, divide_up(rows, 2)}) add(&Blocking::row_blocks, blocks, most_row_blocks(size));
  for (const std::int64_t blocks : {columns * 2, divide_up(columns, 2)}) add(&Blocking::col_blocks, blocks, size.panels);
  for (const std::int64_t steps : {depth * 2, divide_up(depth, 2)})
    add(&Blocking::depth, divide_up(std::min(steps, 2 * size.longest_pass), size.depth_step) * size.depth_step, std::max(size.k, depth));
  const std::int64_t tasks = size.batch * rows * columns;
  for (const std::int64_t tasks_together : {std::int64_t{1}, divide_up(tasks, threads)})
    add(&Blocking::grain, tasks_together, std::max(tasks, grain));
  return all;
}

/// The threads that share a product.
template <class T>
std::int64_t threads_of(const ProductChoice& choice, const GemmArgs<T>& args, int threads) {
  return std::min<std::int64_t>(threads, divide_up(args.batch * choice.cut.row_blocks * choice.cut.col_blocks, choice.cut.grain));
}

/// A product that can be run again and again.
template <class T>
class Trial {
 public:
  Trial(const GemmArgs<T>& args, ThreadPool& pool) : args_(args), pool_(pool) {
    if (!args.epilogue) return;
    args_.epilogue_context = &copied_;
    copied_.stride = args.epilogue_by_columns ? args.m : args.n;
    copied_.item = args.m * args.n;
    copied_.by_columns = args.epilogue_by_columns;
    copied_.sums = AlignedBuffer(static_cast<std::size_t>(args.batch * args.m * args.n) * sizeof(Sum<T>));
    args_.epilogue = [](void* copy, Sum<T>* tile, std::int64_t tile_stride, std::int64_t batch, std::int64_t row0, std::int64_t rows,
                        std::int64_t col0,
                        std::int64_t cols) { static_cast<Copied*>(copy)->take(tile, tile_stride, batch, row0, rows, col0, cols); };
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  double seconds(const ProductChoice& choice) {
    constexpr double budget = 3e-3;
    args_.choice = &choice;
    const AlignedBuffer workspace(gemm_workspace(args_, pool_.size()));
    args_.workspace = workspace.data();
    return fastest_seconds(budget, [this] { gemm(args_, pool_); });
  }

 private:
  /// In place of an epilogue, which also stores as many numbers.
  struct Copied {
    void take(const Sum<T>* tile, std::int64_t tile_stride, std::int64_t batch, std::int64_t row0, std::int64_t rows, std::int64_t col0,
              std::int64_t cols) {
      if (by_columns) std::swap(row0, col0), std::swap(rows, cols);
      Sum<T>* to = reinterpret_cast<Sum<T>*>(sums.data()) + batch * item + row0 * stride + col0;
      for (std::int64_t row = 0; row < rows; ++row, tile += tile_stride, to += stride) std::copy_n(tile, cols, to);
    }
    AlignedBuffer sums;
    std::int64_t stride = 0, item = 0;
    bool by_columns = false;
  };

  GemmArgs<T> args_;
  ThreadPool& pool_;
  Copied copied_;
};

// A choice has to be so much faster than another to count as such.
constexpr double worth = 0.97;

/// Whether a choice is also the faster one when both are timed again, in turn: nearly every time, as one lucky moment would else decide.
template <class T>
bool wins(Trial<T>& trial, const ProductChoice& choice, const ProductChoice& usual) {
  constexpr int rounds = 7, needed = 6;
  int won = 0;
  for (int round = 0; round < rounds; ++round) {
    const double of_usual = trial.seconds(usual);
    if (trial.seconds(choice) < of_usual * worth) ++won;
  }
  return won >= needed;
}

}  // namespace

template <class T>
ProductChoice usual_choice(const GemmArgs<T>& args, int threads) {
  return choice_of(args, worth_transposing(args), threads);
}

template <class T>
bool is_possible(const ProductChoice& choice, const GemmArgs<T>& args) {
  if (choice.transposed && (!can_transpose<T> || args.compute_a || (args.packed_b && args.packed_b->panels() > 1))) return false;
  const ProductSize size = size_of(args, choice.transposed);
  const auto& [rows, columns, depth, grain] = choice.cut;
  return rows >= 1 && rows <= most_row_blocks(size) && columns >= 1 && columns <= size.panels && depth >= 1 && grain >= 1 &&
         depth % size.depth_step == 0 && (depth <= size.k || depth <= 2 * size.longest_pass);
}

template <class T>
ProductChoice fastest_choice(const GemmArgs<T>& args, ThreadPool& pool) {
  const int threads = pool.size();
  Trial<T> trial(args, pool);
  const ProductChoice usual = usual_choice(args, threads);
  const std::int64_t least_threads = threads_of(usual, args, threads);
  ProductChoice best = usual;
  double seconds = trial.seconds(best);
  const auto take_if_faster = [&](const ProductChoice& choice) {
    // Where another process has the other CPUs for a moment, fewer threads look faster, and would be kept for ever.
    if (!is_possible(choice, args) || threads_of(choice, args, threads) < least_threads) return false;
    const double its = trial.seconds(choice);
    if (its >= seconds * worth) return false;
    best = choice, seconds = its;
    return true;
  };
  if (const ProductChoice other{!usual.transposed, {}}; can_transpose<T> && (usual.transposed || (!args.compute_a && !args.packed_b)))
    take_if_faster(choice_of(args, other.transposed, threads));
  constexpr int longest_way = 3;
  for (int step = 0; step < longest_way; ++step) {
    bool moved = false;
    for (const ProductChoice& next : neighbours(best, size_of(args, best.transposed), threads)) moved |= take_if_faster(next);
    if (!moved) break;
  }
  return best == usual || !wins(trial, best, usual) ? usual : best;
}

std::string to_string(const ProductChoice& choice, std::int64_t units) {
  const std::int64_t passes = std::max<std::int64_t>(1, divide_up(units, choice.cut.depth));
  return fmt::format("{} x {} blocks, {} pass{}, grain {}{}", choice.cut.row_blocks, choice.cut.col_blocks, passes, passes == 1 ? "" : "es",
                     choice.cut.grain, choice.transposed ? ", transposed" : "");
}

template ProductChoice usual_choice(const GemmArgs<float>&, int);
template ProductChoice usual_choice(const GemmArgs<double>&, int);
template ProductChoice usual_choice(const GemmArgs<Bf16>&, int);
template ProductChoice usual_choice(const GemmArgs<F16>&, int);
template ProductChoice usual_choice(const GemmArgs<Bf16Weight>&, int);
template ProductChoice usual_choice(const GemmArgs<std::int8_t>&, int);
template bool is_possible(const ProductChoice&, const GemmArgs<float>&);
template bool is_possible(const ProductChoice&, const GemmArgs<double>&);
template bool is_possible(const ProductChoice&, const GemmArgs<Bf16>&);
template bool is_possible(const ProductChoice&, const GemmArgs<F16>&);
template bool is_possible(const ProductChoice&, const GemmArgs<Bf16Weight>&);
template bool is_possible(const ProductChoice&, const GemmArgs<std::int8_t>&);
template ProductChoice fastest_choice(const GemmArgs<float>&, ThreadPool&);
template ProductChoice fastest_choice(const GemmArgs<double>&, ThreadPool&);
template ProductChoice fastest_choice(const GemmArgs<Bf16>&, ThreadPool&);
template ProductChoice fastest_choice(const GemmArgs<F16>&, ThreadPool&);
template ProductChoice fastest_choice(const GemmArgs<Bf16Weight>&, ThreadPool&);
template ProductChoice fastest_choice(const GemmArgs<std::int8_t>&, ThreadPool&);

}  // namespace rlx::cpu
