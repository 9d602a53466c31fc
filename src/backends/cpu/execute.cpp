#include "backends/cpu/execute.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>

#include "backends/cpu/attention/run.h"
#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/gemm/tune.h"
#include "backends/cpu/gemm/winograd.h"
#include "backends/cpu/quantised/run.h"
#include "base/checked.h"
#include "ir/reference.h"

namespace rlx::cpu {

SizeFunction::SizeFunction(const Dim& dim, const std::vector<std::string>& symbols) {
  for (const Dim::Term& term : dim.terms()) {
    if (term.symbols.empty()) {
      constant_ = term.coefficient;
      continue;
    }
    Term mine{term.coefficient, {}};
    for (const auto& symbol : term.symbols) {
      const auto it = std::find(symbols.begin(), symbols.end(), symbol->name);
      if (it == symbols.end()) fail_internal("execute: symbol '{}' has no value", symbol->name);
      mine.symbols.push_back(static_cast<int>(it - symbols.begin()));
    }
    terms_.push_back(std::move(mine));
  }
}

std::int64_t SizeFunction::operator()(const std::int64_t* values) const {
  std::optional<std::int64_t> total = constant_;
  for (const Term& term : terms_) {
    std::optional<std::int64_t> product = term.coefficient;
    for (int symbol : term.symbols)
      if (product) product = checked_mul(*product, values[symbol]);
    total = total && product ? checked_add(*total, *product) : std::nullopt;
  }
  if (!total) fail("a size leaves the range of 64-bit integers");
  return *total;
}

std::shared_ptr<const Panels> PackedWeights::find(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return nullptr;
  const auto is_gone = [](const Source& source) { return source.owner.expired(); };
  return std::ranges::any_of(it->second.sources, is_gone) ? nullptr : it->second.panels.lock();
}

void PackedWeights::add(const std::string& key, const std::shared_ptr<const Panels>& panels, const std::vector<Array>& origins) {
  Entry entry{panels, {}};
  for (const Array& origin : origins) entry.sources.push_back({origin.bytes().data(), origin.owner()});
  const std::scoped_lock lock(mutex_);
  std::erase_if(entries_, [](const auto& known) { return known.second.panels.expired(); });
  entries_[key] = std::move(entry);
}

void PackedWeights::forget(const Array& weights) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.sources, [&](const Source& source) { return source.bytes == weights.bytes().data(); });
  });
}

std::string panel_layout(const Step& step, CpuLevel level) {
  if (const auto* dot = std::get_if<BlockDot>(&step.launch->what))
    return fmt::format("{} blocks {}{} {} {} {}", static_cast<int>(level), dot->type, dot->int8 ? " int8" : "", dot->matrices.value(),
                       dot->columns.value(), dot->depth.value());
  const auto& product = std::get<Product>(step.launch->what);
  const auto fixed = [](const SizeFunction& size) { return size(nullptr); };  // without symbols: see has_fixed_layout
  std::string text = fmt::format("{} {}{} {} {} {} {} {} {}", static_cast<int>(level), name(product.element),
                                 product.float_left ? " by f32" : "", fixed(step.offsets[1]), fixed(step.depth[0]), fixed(step.depth[2]),
                                 fixed(step.columns[0]), fixed(step.columns[1]), product.b_by_tables);
  if (step.winograd) text += " winograd";
  for (const Step::Axis& axis : step.depth_axes) text += fmt::format(" {}*{}", fixed(axis[0]), fixed(axis[2]));
  return text;
}

namespace {

void prepare_kernel(Step& step, const GeneratedKernel& launch, const Program& program) {
  const Kernel& kernel = launch.kernel;
  const std::size_t outer = grid_loops(kernel);
  std::set<int> grid(kernel.loops.begin(), kernel.loops.begin() + static_cast<std::ptrdiff_t>(outer));
  for (std::size_t i = 0; i < outer; ++i) step.grid.emplace_back(kernel.extent(kernel.loops[i]), program.symbols);
  const auto free = free_variables(kernel);
  std::vector<std::pair<Dim, double>> work;
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    Dim runs = 1;
    for (int v : free[i])
      if (!grid.count(v)) runs *= kernel.extent(v);
    for (int v : kernel.exprs[i].variables) runs *= kernel.extent(v);
    auto it = std::find_if(work.begin(), work.end(), [&](const auto& w) { return w.first == runs; });
    if (it == work.end()) work.emplace_back(runs, 1);
    else it->second += 1;
  }
  for (const auto& [runs, count] : work) step.work.emplace_back(SizeFunction(runs, program.symbols), count);
}

/// Whether every run reads the same part of the right operand, so that it can be packed once.
bool has_fixed_layout(const Product& p) {
  std::vector<Dim> dims{p.columns.extent, p.columns.b_stride, p.depth.extent, p.depth.b_stride, p.b_offset};
  for (const ProductAxis& axis : p.depth_axes) dims.insert(dims.end(), {axis.extent, axis.b_stride});
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_static(); });
}

void prepare_product(Step& step, const Product& p, const Program& program, const std::function<int(ValueId)>& slot_of,
                     const std::function<bool(ValueId)>& is_weight) {
  auto f = [&](const Dim& d) { return SizeFunction(d, program.symbols); };
  step.a = p.prologue ? -1 : slot_of(p.a);
  step.b = slot_of(p.b);
  step.c = slot_of(p.result);
  step.weights = is_weight(p.b) && has_fixed_layout(p);
  const auto add = [&](const std::vector<ProductAxis>& axes, std::vector<Step::Axis>& to) {
    for (const ProductAxis& axis : axes) to.push_back({f(axis.extent), f(axis.a_stride), f(axis.b_stride), f(axis.c_stride)});
  };
  add(p.batch, step.batch);
  add(p.row_axes, step.row_axes);
  add(p.depth_axes, step.depth_axes);
  for (const ProductAxis& axis : p.batch) step.weights = step.weights && axis.b_stride == Dim(0);
  step.winograd = p.winograd && step.weights;
  step.rows = {f(p.rows.extent), f(p.rows.a_stride), f(p.rows.c_stride)};
  step.columns = {f(p.columns.extent), f(p.columns.b_stride), f(p.columns.c_stride)};
  step.depth = {f(p.depth.extent), f(p.depth.a_stride), f(p.depth.b_stride)};
  step.offsets = {f(p.a_offset), f(p.b_offset), f(p.c_offset)};
}

}  // namespace

std::vector<Step> make_steps(const Program& program, const std::function<int(ValueId)>& slot_of,
                             const std::function<bool(ValueId)>& is_weight) {
  std::vector<Step> steps;
  for (const Launch& launch : program.launches) {
    Step step;
    step.launch = &launch;
    if (const auto* kernel = std::get_if<GeneratedKernel>(&launch.what)) {
      for (const KernelBuffer& buffer : kernel->kernel.buffers) step.buffers.push_back(slot_of(buffer.value));
      prepare_kernel(step, *kernel, program);
    } else if (const auto* product = std::get_if<Product>(&launch.what)) {
      prepare_product(step, *product, program, slot_of, is_weight);
      const auto tile_buffers = [&](const std::optional<GeneratedKernel>& kernel, ValueId tile, bool written) {
        std::vector<int> slots;
        if (kernel)
          for (const KernelBuffer& b : kernel->kernel.buffers)
            slots.push_back(b.value == tile && b.written == written ? -1 : slot_of(b.value));
        return slots;
      };
      step.prologue_buffers = tile_buffers(product->prologue, product->a, true);
      step.buffers = tile_buffers(product->epilogue, product->dot, false);
    } else if (const auto* attention = std::get_if<Attention>(&launch.what)) {
      step.attention = prepare_attention(*attention, program, slot_of);
    } else if (const auto* update = std::get_if<StateUpdate>(&launch.what)) {
      step.c = slot_of(update->state);
      for (std::size_t i = 1; i < launch.reads.size(); ++i) step.operands.push_back(slot_of(launch.reads[i]));  // behind the state
    } else if (const auto* dot = std::get_if<BlockDot>(&launch.what)) {
      step.a = slot_of(dot->x), step.b = slot_of(dot->blocks), step.c = slot_of(dot->node);
      step.weights = is_weight(dot->blocks);
      step.rows[0] = SizeFunction(dot->rows, program.symbols);
      if (dot->experts) step.operands.push_back(slot_of(*dot->experts));
    } else {
      for (ValueId v : launch.reads) step.operands.push_back(slot_of(v));
      for (ValueId v : launch.writes) step.results.push_back(slot_of(v));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::byte* workspace(const RunState& run, std::size_t bytes) {
  if (run.scratch_bytes) *run.scratch_bytes = bytes;
  static thread_local std::size_t size = 0;
  static thread_local AlignedBuffer buffer;
  if (bytes > size) {
    buffer = AlignedBuffer();  // before the larger one is taken
    size = 0;
    buffer = AlignedBuffer(bytes);
    size = bytes;
  }
  return buffer.data();
}

namespace {

void run_kernel(const Step& step, const GeneratedKernel& launch, const RunState& run) {
  std::vector<void*> buffers;
  for (int slot : step.buffers) buffers.push_back(run.memory[static_cast<std::size_t>(slot)]);
  std::int64_t count = 1;
  for (const SizeFunction& extent : step.grid) count *= extent(run.symbols.data());
  double work = 0;
  for (const auto& [runs, operations] : step.work) work += static_cast<double>(runs(run.symbols.data())) * operations;
  constexpr double worth_a_thread = 32768;  // operations: a few microseconds
  const auto grain = static_cast<std::int64_t>(std::max(1.0, worth_a_thread / std::max(1.0, work)));
  run.pool->parallel_for(
      count, grain, [&](std::int64_t begin, std::int64_t end, int) { launch.function(buffers.data(), run.symbols.data(), begin, end); });
}

/// What a kernel over tiles of a product is called with.
struct TileCall {
  TileCall(const GeneratedKernel& kernel, const std::vector<int>& slots, const RunState& run)
      : function(kernel.function), sizes(run.symbols) {
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

template <class T>
void call_epilogue(void* call, Sum<T>* tile, std::int64_t stride, std::int64_t batch, std::int64_t row0, std::int64_t rows,
                   std::int64_t col0, std::int64_t cols) {
  (*static_cast<const TileCall*>(call))(tile - row0 * stride - col0, {stride, batch, batch + 1, row0, row0 + rows, col0, col0 + cols});
}

template <class T>
void call_epilogue_by_columns(void* call, Sum<T>* tile, std::int64_t stride, std::int64_t batch, std::int64_t row0, std::int64_t rows,
                              std::int64_t col0, std::int64_t cols) {
  (*static_cast<const TileCall*>(call))(tile - col0 * stride - row0, {stride, batch, batch + 1, row0, row0 + rows, col0, col0 + cols});
}

template <class T>
void call_prologue(void* call, Left<T>* panel, std::int64_t batch, std::int64_t row0, std::int64_t rows, std::int64_t k0,
                   std::int64_t depth) {
  (*static_cast<const TileCall*>(call))(panel - k0 * rows - row0, {rows, batch, batch + 1, row0, row0 + rows, k0, k0 + depth});
}

using Offsets = std::vector<std::int64_t>;

/// Where each combination of the axes lies in one of the three matrices, the last axis fastest.
Offsets offsets(const std::vector<Step::Axis>& axes, std::size_t matrix, const std::int64_t* symbols) {
  Offsets all{0};
  for (const Step::Axis& axis : axes) {
    const std::int64_t extent = axis[0](symbols), stride = axis[matrix + 1](symbols);
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
  OffsetTables(const Step& step, const Product& product, const std::int64_t* s)
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
Matrix<Left<T>> left_matrix(const void* data, const Step& step, const OffsetTables& tables, const std::int64_t* s) {
  Matrix<Left<T>> a{static_cast<const Left<T>*>(data) + step.offsets[0](s), step.rows[1](s), step.depth[1](s), 0, tables.items[0].data()};
  if (!step.depth_axes.empty()) a.row_offsets = tables.rows.data(), a.col_offsets = tables.depth.data();
  return a;
}

template <class T>
Matrix<T> right_matrix(const void* data, const Step& step, const Product& product, const OffsetTables& tables, const std::int64_t* s) {
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
ProductChoice tuned_choice(const GemmArgs<T>& args, const RunState& run) {
  const std::int64_t left = args.pack_a ? 4 : layout_of(args.a), right = args.packed_b ? 4 : layout_of(args.b);
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
  const ProductChoice choice = run.tuned->get(
      key, [&](const ProductChoice& known) { return is_possible(known, args); }, [&] { return fastest_choice(args, *run.pool); });
  if (!run.blocks) return choice;
  const ProductChoice usual = usual_choice(args, run.pool->size());
  const std::int64_t units = args.kernel->units(args.k);
  *run.blocks = choice == usual ? to_string(usual, units) + " (as usual)"
                                : fmt::format("{} (usual: {})", to_string(choice, units), to_string(usual, units));
  return choice;
}

/// A convolution as its axes say it: items are images, rows (line, position), and depths too, with the channel. False where its weights are
/// not kept as panels.
bool run_winograd(const Step& step, const Product& product, const RunState& run) {
  const auto number = [&](const SizeFunction& size) { return size(run.symbols.data()); };
  const auto memory = [&](int slot) { return run.memory[static_cast<std::size_t>(slot)]; };
  const Step::Axis &line = step.row_axes[0], &position = step.row_axes[1];
  WinogradArgs<float> args;
  if (!step.batch.empty()) args.images = number(step.batch[0][0]), args.image_stride = number(step.batch[0][1]);
  args.height = number(line[0]), args.line_stride = number(line[1]);
  args.width = number(position[0]), args.position_stride = number(position[1]);
  args.channels = number(step.depth_axes[2][0]), args.columns = number(step.columns[0]);
  args.x = reinterpret_cast<const float*>(memory(step.a)) + number(step.offsets[0]);
  const auto packed = run.packed(step, [&](const Array& weights) {
    const auto* const w = reinterpret_cast<const float*>(weights.bytes().data()) + number(step.offsets[1]);
    const auto stride = [&](std::size_t axis) { return number(step.depth_axes[axis][2]); };
    const WinogradKernels<float> kernels{w, stride(0), stride(1), stride(2), number(step.columns[1])};
    return std::make_shared<const PanelsOf<PackedB<float>>>(
        winograd_weights(kernels, args.channels, args.columns, *run.pool, micro_kernel<float>(run.level)));
  });
  if (!packed) return false;
  args.weights = &static_cast<const PanelsOf<PackedB<float>>&>(*packed).held;
  TileCall epilogue(*product.epilogue, step.buffers, run);
  args.epilogue = call_epilogue<float>;
  args.epilogue_context = &epilogue;
  args.workspace = workspace(run, winograd_workspace(args, run.pool->size()));
  winograd(args, *run.pool);
  return true;
}

template <class T>
void run_product(const Step& step, const Product& product, const RunState& run) {
  if (step.winograd && run.packed && run_winograd(step, product, run)) return;
  const std::int64_t* s = run.symbols.data();
  const auto memory = [&](int slot) { return run.memory[static_cast<std::size_t>(slot)]; };
  const OffsetTables tables(step, product, s);
  GemmArgs<T> args;
  args.kernel = &micro_kernel<T>(run.level);
  args.m = step.rows[0](s);
  args.n = step.columns[0](s);
  args.k = step.depth[0](s);
  args.batch = static_cast<std::int64_t>(tables.items[0].size());
  args.b = right_matrix<T>(memory(step.b), step, product, tables, s);
  std::optional<TileCall> prologue, epilogue;
  if (product.prologue) {
    args.pack_a = call_prologue<T>;
    args.pack_a_context = &prologue.emplace(*product.prologue, step.prologue_buffers, run);
  } else {
    args.a = left_matrix<T>(memory(step.a), step, tables, s);
  }
  std::shared_ptr<const Panels> packed;
  if (step.weights && run.packed) {
    packed = run.packed(step, [&](const Array& weights) {
      Matrix<T> whole = right_matrix<T>(weights.bytes().data(), step, product, tables, s);
      whole.batch_offsets = nullptr;
      return std::make_shared<const PanelsOf<PackedB<T>>>(pack_b<T>(whole, 1, args.k, args.n, *run.pool, *args.kernel));
    });
    if (packed) args.packed_b = &static_cast<const PanelsOf<PackedB<T>>&>(*packed).held;
  }
  if (product.epilogue) {
    args.epilogue = product.epilogue_by_columns ? call_epilogue_by_columns<T> : call_epilogue<T>;
    args.epilogue_by_columns = product.epilogue_by_columns;
    args.epilogue_context = &epilogue.emplace(*product.epilogue, step.buffers, run);
  } else {
    args.c = reinterpret_cast<Sum<T>*>(memory(step.c)) + step.offsets[2](s);
    args.c_row_stride = step.rows[2](s);
    args.c_batch_offsets = tables.items[2].data();
  }
  std::optional<ProductChoice> choice;
  if (run.tuned && args.batch > 0 && args.m > 0 && args.n > 0) args.choice = &choice.emplace(tuned_choice(args, run));
  args.workspace = workspace(run, gemm_workspace(args, run.pool->size()));
  gemm(args, *run.pool);
}

/// The windows of one update of a state.
class StateWriter {
 public:
  StateWriter(const Step& step, const StateUpdate& update, const RunState& run)
      : step_(step), run_(run), shape_(sizes(update.state)), width_(bytes_for(graph().type(update.state).dtype, 1)) {}

  void operator()(const StateUpdate::Window& window) {
    Window here{memory(), sizes(window.value), {}};
    ++next_;
    for (ValueId start : window.starts) {
      here.starts.push_back(integers(start).get_int(0));
      ++next_;
    }
    copy(here);
  }

  void operator()(const StateUpdate::Windows& windows) {
    const std::byte* const bytes = memory();
    ++next_;
    const Array starts = integers(windows.starts);
    ++next_;
    const std::vector<std::int64_t> all = sizes(windows.value);
    Window here{bytes, {all.begin() + 1, all.end()}, std::vector<std::int64_t>(shape_.size(), 0)};
    for (std::int64_t axis : windows.inserted) here.shape.insert(here.shape.begin() + axis, 1);
    const auto axes = static_cast<std::int64_t>(windows.axes.size());
    for (std::int64_t row = 0; row < all[0]; ++row) {
      for (std::int64_t i = 0; i < axes; ++i)
        here.starts[static_cast<std::size_t>(windows.axes[static_cast<std::size_t>(i)])] = starts.get_int(row * axes + i);
      copy(here);
      here.bytes += product_of(here.shape) * width_;
    }
  }

 private:
  static std::int64_t product_of(const std::vector<std::int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  const Graph& graph() const { return run_.program->graph; }
  std::vector<std::int64_t> sizes(ValueId value) const {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : graph().type(value).shape) shape.push_back(dim.evaluate(run_.bindings));
    return shape;
  }
  const std::byte* memory() const { return run_.memory[static_cast<std::size_t>(step_.operands[next_])]; }
  Array integers(ValueId value) const {
    const DType dtype = graph().type(value).dtype;
    std::vector<std::int64_t> shape = sizes(value);
    const auto bytes = static_cast<std::size_t>(bytes_for(dtype, product_of(shape)));
    return Array(dtype, std::move(shape), {memory(), bytes}, nullptr);
  }
  void copy(const Window& window) const { copy_window(window, shape_, width_, run_.memory[static_cast<std::size_t>(step_.c)]); }

  const Step& step_;
  const RunState& run_;
  const std::vector<std::int64_t> shape_;
  const std::int64_t width_;
  std::size_t next_ = 0;  // of the step's operands
};

void run_state_update(const Step& step, const StateUpdate& update, const RunState& run) {
  StateWriter write(step, update, run);
  for (const auto& window : update.windows) std::visit(write, window);
}

void run_host(const Step& step, const HostLaunch& launch, const RunState& run) {
  const Graph& graph = run.program->graph;
  const Node& node = graph.node(launch.node);
  auto array_at = [&](const Type& type, int slot) {
    const Type fixed = bind_sizes(type, run.bindings);
    std::vector<std::int64_t> shape;
    for (const Dim& d : fixed.shape) shape.push_back(d.value());
    const auto bytes = static_cast<std::size_t>(bytes_for(type.dtype, fixed.size().value())), at = static_cast<std::size_t>(slot);
    return Array(type.dtype, std::move(shape), {run.memory[at], bytes}, run.weights[at]);
  };
  std::vector<Array> operands;
  for (std::size_t i = 0; i < node.operands.size(); ++i) operands.push_back(array_at(graph.type(node.operands[i]), step.operands[i]));
  const std::vector<Array> results = evaluate_node(graph, launch.node, run.bindings, operands, run.run_region);
  for (std::size_t i = 0; i < results.size(); ++i)
    std::memcpy(run.memory[static_cast<std::size_t>(step.results[i])], results[i].bytes().data(), results[i].bytes().size());
}

}  // namespace

void execute(const Step& step, const RunState& run) {
  if (const auto* dot = std::get_if<BlockDot>(&step.launch->what)) return run_block_dot(step, *dot, run);
  run.packed_rows = {};
  if (const auto* kernel = std::get_if<GeneratedKernel>(&step.launch->what)) return run_kernel(step, *kernel, run);
  if (const auto* host = std::get_if<HostLaunch>(&step.launch->what)) return run_host(step, *host, run);
  if (step.attention) return run_attention(*step.attention, run);
  if (const auto* update = std::get_if<StateUpdate>(&step.launch->what)) return run_state_update(step, *update, run);
  const auto& product = std::get<Product>(step.launch->what);
  switch (product.element) {
    case DType::f64: return run_product<double>(step, product, run);
    case DType::bf16: return product.float_left ? run_product<Bf16Weight>(step, product, run) : run_product<Bf16>(step, product, run);
    case DType::f16: return run_product<F16>(step, product, run);
    case DType::i8: return run_product<std::int8_t>(step, product, run);
    default: return run_product<float>(step, product, run);
  }
}

}  // namespace rlx::cpu
