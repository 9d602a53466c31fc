#include "backends/cpu/product/step.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "backends/cpu/execution/execute.h"
#include "backends/cpu/execution/tuned_choices.h"
#include "backends/cpu/gemm/dot_products.h"
#include "backends/cpu/gemm/tune.h"
#include "backends/cpu/gemm/winograd.h"
#include "backends/cpu/machine/level_of.h"
#include "backends/cpu/product/packing.h"
#include "backends/cpu/product/product_kernels.h"

namespace rlx::cpu {
namespace {

using Axis = std::array<Size, 4>;  // extent and strides of A, B, C

struct ProductStep {
  int a, b, c;  // slots
  TunedChoices* tuned;
  std::vector<Axis> batch, row_axes, depth_axes;
  std::array<Size, 3> rows, columns, depth;  // extent, stride in the left and in the right of its two matrices
  std::array<Size, 3> offsets;               // of A, B, C
};

}  // namespace

void prepare_step(const Product& p, Step& step, const Preparation& given) {
  SizeTable& f = given.sizes;
  const auto& slot_of = given.slot_of;
  const auto sizes_of = [&](const std::vector<ProductAxis>& axes) {
    std::vector<Axis> all;
    for (const ProductAxis& axis : axes) all.push_back({f(axis.extent), f(axis.a_stride), f(axis.b_stride), f(axis.c_stride)});
    return all;
  };
  ProductStep found{
      .a = p.prologue ? -1 : slot_of(p.a),
      .b = slot_of(p.b),
      .c = slot_of(p.result),
      .tuned = given.tuned,
      .batch = sizes_of(p.batch),
      .row_axes = sizes_of(p.row_axes),
      .depth_axes = sizes_of(p.depth_axes),
      .rows = {f(p.rows.extent), f(p.rows.a_stride), f(p.rows.c_stride)},
      .columns = {f(p.columns.extent), f(p.columns.b_stride), f(p.columns.c_stride)},
      .depth = {f(p.depth.extent), f(p.depth.a_stride), f(p.depth.b_stride)},
      .offsets = {f(p.a_offset), f(p.b_offset), f(p.c_offset)},
  };
  if (p.packed) prepare_weights(step, given, *p.packed, packed_bytes(packed_right(p), given.level));
  step.found = std::make_shared<const ProductStep>(std::move(found));
  const auto add_part = [&](ValueId tile, bool written) {
    KernelStep& part = step.kernels.emplace_back();
    for (const KernelBuffer& b : step.launch->kernels[step.kernels.size() - 1].kernel.buffers)
      part.buffers.push_back(b.value == tile && b.written == written ? -1 : slot_of(b.value));
  };
  if (p.prologue) add_part(p.a, true);
  if (p.epilogue) add_part(p.dot, false);
}

namespace {

/// What a kernel over tiles of a product is called with.
struct TileCall {
  TileCall(const Step& step, std::size_t part, const RunState& run) : function(step.launch->kernels[part].function), sizes(run.symbols) {
    const std::vector<int>& slots = step.kernels[part].buffers;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      buffers.push_back(slots[i] < 0 ? nullptr : run.memory[static_cast<std::size_t>(slots[i])]);
      if (slots[i] < 0) tiles.push_back(i);
    }
  }
  /// The kernel addresses the tile by the positions in the whole matrix: `origin` is where its element (0, 0) would be.
  void operator()(void* origin, const std::array<std::int64_t, epilogue_tile_sizes>& of_tile) const {
    std::array<void*, most_epilogue_arguments> its_buffers;
    std::array<std::int64_t, most_epilogue_arguments> its_sizes;
    std::copy(buffers.begin(), buffers.end(), its_buffers.begin());
    for (std::size_t i : tiles) its_buffers[i] = origin;
    std::copy(of_tile.begin(), of_tile.end(), std::copy(sizes.begin(), sizes.end(), its_sizes.begin()));
    function(its_buffers.data(), its_sizes.data(), 0, 0);
  }

  KernelFunction function;
  std::vector<void*> buffers;
  std::vector<std::size_t> tiles;  // buffers that are the tile
  std::vector<std::int64_t> sizes;
};

/// An epilogue on a tile of C, or a prologue on a block of A; `stride` elements lie between its rows, or between its columns.
template <class Element, bool by_columns>
void call_on_tile(void* call, Element* tile, std::int64_t stride, std::int64_t batch, std::int64_t row0, std::int64_t rows,
                  std::int64_t col0, std::int64_t cols) {
  Element* const origin = by_columns ? tile - col0 * stride - row0 : tile - row0 * stride - col0;
  (*static_cast<const TileCall*>(call))(origin, {stride, batch, batch + 1, row0, row0 + rows, col0, col0 + cols});
}

using Offsets = std::vector<std::int64_t>;

/// Where each combination of the axes lies in one of the three matrices, the last axis fastest.
Offsets offsets(const std::vector<Axis>& axes, std::size_t matrix, const std::int64_t* sizes) {
  Offsets all{0};
  for (const Axis& axis : axes) {
    const std::int64_t extent = axis[0](sizes), stride = axis[matrix + 1](sizes);
    Offsets next;
    next.reserve(all.size() * static_cast<std::size_t>(extent));
    for (std::int64_t base : all)
      for (std::int64_t i = 0; i < extent; ++i) next.push_back(base + i * stride);
    all = std::move(next);
  }
  return all;
}

/// What a product finds its elements by, besides strides.
struct OffsetTables {
  OffsetTables(const ProductStep& step, const Product& product, const std::int64_t* s)
      : items{offsets(step.batch, 0, s), offsets(step.batch, 1, s), offsets(step.batch, 2, s)} {
    if (step.depth_axes.empty()) return;
    rows = offsets(step.row_axes, 0, s);
    depth = offsets(step.depth_axes, 0, s);
    if (!product.b_by_tables) return;
    depth_of_b = offsets(step.depth_axes, 1, s);
    columns = offsets({{step.columns[0], {}, step.columns[1], {}}}, 1, s);
  }

  std::array<Offsets, 3> items;  // of A, B and C
  Offsets rows, depth;           // of A; empty where strides say where they are, as are those of B
  Offsets depth_of_b, columns;
};

/// A where the memory of its value begins at `data`.
template <class T>
Matrix<Left<T>> left_matrix(const void* data, const ProductStep& step, const OffsetTables& tables, const std::int64_t* s) {
  Matrix<Left<T>> a{static_cast<const Left<T>*>(data) + step.offsets[0](s), step.rows[1](s), step.depth[1](s), 0, tables.items[0].data()};
  if (!step.depth_axes.empty()) a.row_offsets = tables.rows.data(), a.col_offsets = tables.depth.data();
  return a;
}

template <class T>
Matrix<T> right_matrix(const void* data, const ProductStep& step, const Product& product, const OffsetTables& tables,
                       const std::int64_t* s) {
  Matrix<T> b{static_cast<const T*>(data) + step.offsets[1](s), step.depth[2](s), step.columns[1](s), 0, tables.items[1].data()};
  if (product.b_by_tables) b.row_offsets = tables.depth_of_b.data(), b.col_offsets = tables.columns.data();
  else if (!step.depth_axes.empty()) b.row_stride = step.depth_axes.back()[2](s);
  return b;
}

/// How a matrix lies in memory, as far as time depends on it: where its rows or columns follow each other, or that tables say where.
template <class T>
std::int64_t layout_of(const Matrix<T>& x) {
  return x.row_offsets ? 3 : x.col_stride == 1 ? 0 : x.row_stride == 1 ? 1 : 2;
}

template <class T>
ProductChoice tuned_choice(TunedChoices& tuned, const GemmArgs<T>& args, const RunState& run) {
  const std::int64_t left = args.compute_a ? 4 + args.a_by_columns : layout_of(args.a), right = args.packed_b ? 4 : layout_of(args.b);
  const std::int64_t ending = !args.epilogue ? 0 : args.epilogue_by_columns ? 2 : 1;
  const ProductKey key{sizeof(Left<T>),
                       sizeof(T),
                       Format<T>::group,
                       args.batch,
                       args.m,
                       args.n,
                       args.k,
                       left,
                       right,
                       ending,
                       args.kernel->panel_cols,
                       args.kernel->max_rows,
                       args.packed_b ? args.packed_b->batch() : 0};
  const ProductChoice choice =
      tuned.get(key, [&](const ProductChoice& known) { return is_possible(known, args); }, [&] { return fastest_choice(args, *run.pool); });
  if (!run.report) return choice;
  const ProductChoice usual = usual_choice(args, run.pool->size());
  const std::int64_t units = args.kernel->units(args.k);
  run.report->blocks = choice == usual ? to_string(usual, units) + " (as usual)"
                                       : fmt::format("{} (usual: {})", to_string(choice, units), to_string(usual, units));
  return choice;
}

/// What the right operand was packed to; null: it is not.
std::byte* packed_in(const Step& step, const RunState& run) {
  return step.weights < 0 ? nullptr : run.memory[static_cast<std::size_t>(step.weights)];
}

/// A convolution as its axes say it: items are images, rows (line, position), and depths too, with the channel.
void run_winograd(const Step& step, const Product& product, const RunState& run) {
  const auto& at = step.found_as<ProductStep>();
  const auto number = [&](const Size& size) { return size(run.sizes.data()); };
  const auto memory = [&](int slot) { return run.memory[static_cast<std::size_t>(slot)]; };
  const Axis &line = at.row_axes[0], &position = at.row_axes[1];
  WinogradArgs<float> args;
  if (!at.batch.empty()) args.images = number(at.batch[0][0]), args.image_stride = number(at.batch[0][1]);
  args.height = number(line[0]), args.line_stride = number(line[1]);
  args.width = number(position[0]), args.position_stride = number(position[1]);
  args.channels = number(at.depth_axes[2][0]), args.columns = number(at.columns[0]);
  args.x = reinterpret_cast<const float*>(memory(at.a)) + number(at.offsets[0]);
  const PackedB<float> weights(winograd_items, args.channels, args.columns, micro_kernel<float>(level_of(*run.target)),
                               packed_in(step, run));
  args.weights = &weights;
  TileCall epilogue(step, *product.epilogue, run);
  args.epilogue = call_on_tile<float, false>;
  args.epilogue_context = &epilogue;
  args.workspace = workspace(run, winograd_workspace(args, run.pool->size()));
  winograd(args, *run.pool);
}

/// `args` say all but where columns lie.
template <class T>
void run_dots(GemmArgs<T>& args, const Step& step, const RunState& run) {
  std::optional<Columns<T>> columns;
  if (std::byte* const packed = packed_in(step, run)) {
    columns.emplace(args.k, args.n, packed);
  } else if (args.b.row_stride != 1) {  // what is computed once is packed for itself
    columns.emplace(args.k, args.n).pack(args.b);
  }
  if (columns) args.b = columns->matrix();
  args.workspace = workspace(run, dot_products_workspace(args));
  dot_products(args, *run.pool);
}

template <class T>
void run_elements(const Step& step, const Product& product, const RunState& run) {
  const auto& at = step.found_as<ProductStep>();
  std::byte* const packed = packed_in(step, run);
  if (product.winograd && packed) return run_winograd(step, product, run);
  const std::int64_t* s = run.sizes.data();
  const auto memory = [&](int slot) { return run.memory[static_cast<std::size_t>(slot)]; };
  const OffsetTables tables(at, product, s);
  GemmArgs<T> args{.kernel = &micro_kernel<T>(level_of(*run.target))};  // that of the process's level is not asked for, which may have none
  args.m = at.rows[0](s);
  args.n = at.columns[0](s);
  args.k = at.depth[0](s);
  args.batch = static_cast<std::int64_t>(tables.items[0].size());
  if (!packed) args.b = right_matrix<T>(memory(at.b), at, product, tables, s);
  std::optional<TileCall> prologue, epilogue;
  if (product.prologue) {
    args.compute_a = product.prologue_by_columns ? call_on_tile<Left<T>, true> : call_on_tile<Left<T>, false>;
    args.a_by_columns = product.prologue_by_columns;
    args.compute_a_context = &prologue.emplace(step, *product.prologue, run);
  } else {
    args.a = left_matrix<T>(memory(at.a), at, tables, s);
  }
  std::optional<PackedB<T>> panels;
  if (packed && !product.dots) args.packed_b = &panels.emplace(1, args.k, args.n, *args.kernel, packed);
  if (product.epilogue) {
    args.epilogue = product.epilogue_by_columns ? call_on_tile<Sum<T>, true> : call_on_tile<Sum<T>, false>;
    args.epilogue_by_columns = product.epilogue_by_columns;
    args.epilogue_context = &epilogue.emplace(step, *product.epilogue, run);
  } else {
    args.c = reinterpret_cast<Sum<T>*>(memory(at.c)) + at.offsets[2](s);
    args.c_row_stride = at.rows[2](s);
    args.c_batch_offsets = tables.items[2].data();
  }
  if constexpr (std::is_same_v<T, Left<T>>)
    if (product.dots) return run_dots(args, step, run);
  std::optional<ProductChoice> choice;
  if (at.tuned && args.batch > 0 && args.m > 0 && args.n > 0) args.choice = &choice.emplace(tuned_choice(*at.tuned, args, run));
  args.workspace = workspace(run, gemm_workspace(args, run.pool->size()));
  gemm(args, *run.pool);
}

}  // namespace

void run_step(const Product& product, const Step& step, const RunState& run) {
  with_elements(product.element, product.float_left, [&]<class T>(std::type_identity<T>) { run_elements<T>(step, product, run); });
}

double Product::flops(const Graph& graph, const Bindings& bindings) const {
  return static_cast<double>((graph.type(dot).size() * depth.extent * 2).evaluate(bindings));
}

}  // namespace rlx::cpu
