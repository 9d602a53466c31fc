#include "backends/cpu/execute.h"

#include <algorithm>
#include <array>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

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

template <class T>
std::shared_ptr<const PackedB<T>> PackedWeights::get(const Array& weights, std::int64_t offset, std::int64_t row_stride,
                                                     std::int64_t col_stride, std::int64_t k, std::int64_t n, ThreadPool& pool,
                                                     CpuLevel level) {
  const std::string key = fmt::format("{} {} {} {} {} {} {} {}", static_cast<const void*>(weights.bytes().data()), offset, row_stride,
                                      col_stride, k, n, static_cast<int>(level), sizeof(T));
  {
    const std::scoped_lock lock(mutex_);
    if (auto it = entries_.find(key); it != entries_.end() && !it->second.owner.expired())
      if (auto packed = it->second.packed.lock()) return std::static_pointer_cast<const PackedB<T>>(packed);
  }
  const T* data = reinterpret_cast<const T*>(weights.bytes().data()) + offset;
  auto packed = std::make_shared<const PackedB<T>>(pack_b<T>({data, row_stride, col_stride, 0, nullptr}, 1, k, n, pool, level));
  const std::scoped_lock lock(mutex_);
  std::erase_if(entries_, [](const auto& entry) { return entry.second.packed.expired(); });
  entries_[key] = {packed, weights.owner()};
  return packed;
}
template std::shared_ptr<const PackedB<float>> PackedWeights::get<float>(const Array&, std::int64_t, std::int64_t, std::int64_t,
                                                                         std::int64_t, std::int64_t, ThreadPool&, CpuLevel);
template std::shared_ptr<const PackedB<double>> PackedWeights::get<double>(const Array&, std::int64_t, std::int64_t, std::int64_t,
                                                                           std::int64_t, std::int64_t, ThreadPool&, CpuLevel);

namespace {

void prepare_kernel(Step& step, const KernelLaunch& launch, const Program& program) {
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

void prepare_product(Step& step, const ProductLaunch& launch, const Program& program, const std::function<int(ValueId)>& slot_of,
                     const std::function<bool(ValueId)>& is_weight) {
  const Product& p = launch.product;
  auto f = [&](const Dim& d) { return SizeFunction(d, program.symbols); };
  step.a = slot_of(p.a);
  step.b = slot_of(p.b);
  step.c = slot_of(p.result);
  step.weights = is_weight(p.b);
  for (const ProductAxis& axis : p.batch) {
    step.batch.push_back({f(axis.extent), f(axis.a_stride), f(axis.b_stride), f(axis.c_stride)});
    step.weights = step.weights && axis.b_stride == Dim(0);
  }
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
    if (const auto* kernel = std::get_if<KernelLaunch>(&launch.what)) {
      for (const KernelBuffer& buffer : kernel->kernel.buffers) step.buffers.push_back(slot_of(buffer.value));
      prepare_kernel(step, *kernel, program);
    } else if (const auto* product = std::get_if<ProductLaunch>(&launch.what)) {
      prepare_product(step, *product, program, slot_of, is_weight);
      if (product->product.epilogue)
        for (const KernelBuffer& buffer : product->product.epilogue->buffers)
          step.buffers.push_back(buffer.value == product->product.dot && !buffer.written ? -1 : slot_of(buffer.value));
    } else {
      for (ValueId v : launch.reads) step.operands.push_back(slot_of(v));
      for (ValueId v : launch.writes) step.results.push_back(slot_of(v));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

namespace {

void run_kernel(const Step& step, const KernelLaunch& launch, const RunState& run) {
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

/// What an epilogue kernel is called with.
struct EpilogueContext {
  KernelFunction function;
  std::vector<void*> buffers;
  std::vector<int> tiles;  // buffers that are the tile
  std::vector<std::int64_t> sizes;
};

template <class T>
void call_epilogue(void* context, T* tile, std::int64_t stride, std::int64_t batch, std::int64_t row0, std::int64_t rows, std::int64_t col0,
                   std::int64_t cols) {
  const auto& c = *static_cast<const EpilogueContext*>(context);
  std::array<void*, most_epilogue_arguments> buffers;
  std::array<std::int64_t, most_epilogue_arguments> sizes;
  std::copy(c.buffers.begin(), c.buffers.end(), buffers.begin());
  // The kernel addresses the tile by row and column of the whole product.
  for (int i : c.tiles) buffers[static_cast<std::size_t>(i)] = tile - row0 * stride - col0;
  std::copy(c.sizes.begin(), c.sizes.end(), sizes.begin());
  const std::array<std::int64_t, epilogue_tile_sizes> of_tile{stride, batch, batch + 1, row0, row0 + rows, col0, col0 + cols};
  std::copy(of_tile.begin(), of_tile.end(), sizes.begin() + static_cast<std::ptrdiff_t>(c.sizes.size()));
  c.function(buffers.data(), sizes.data(), 0, 0);
}

template <class T>
void run_product(const Step& step, const ProductLaunch& launch, const RunState& run) {
  const std::int64_t* s = run.symbols.data();
  GemmArgs<T> args;
  args.level = run.level;
  args.m = step.rows[0](s);
  args.n = step.columns[0](s);
  args.k = step.depth[0](s);
  std::array<std::vector<std::int64_t>, 3> items{{{0}, {0}, {0}}};
  for (const auto& axis : step.batch) {
    const std::int64_t extent = axis[0](s);
    for (std::size_t side = 0; side < 3; ++side) {
      const std::int64_t stride = axis[side + 1](s);
      std::vector<std::int64_t> next;
      next.reserve(items[side].size() * static_cast<std::size_t>(extent));
      for (std::int64_t base : items[side])
        for (std::int64_t i = 0; i < extent; ++i) next.push_back(base + i * stride);
      items[side] = std::move(next);
    }
  }
  args.batch = static_cast<std::int64_t>(items[0].size());
  auto* a = reinterpret_cast<T*>(run.memory[static_cast<std::size_t>(step.a)]) + step.offsets[0](s);
  auto* b = reinterpret_cast<T*>(run.memory[static_cast<std::size_t>(step.b)]) + step.offsets[1](s);
  auto* c = reinterpret_cast<T*>(run.memory[static_cast<std::size_t>(step.c)]) + step.offsets[2](s);
  args.a = {a, step.rows[1](s), step.depth[1](s), 0, items[0].data()};
  args.b = {b, step.depth[2](s), step.columns[1](s), 0, items[1].data()};
  std::shared_ptr<const void> packed;
  if (step.weights) {
    if constexpr (std::is_same_v<T, float>) packed = run.packed_f32 ? run.packed_f32(step, args) : nullptr;
    else packed = run.packed_f64 ? run.packed_f64(step, args) : nullptr;
    args.packed_b = static_cast<const PackedB<T>*>(packed.get());
  }
  EpilogueContext context{launch.epilogue, {}, {}, run.symbols};
  if (launch.product.epilogue) {
    for (std::size_t i = 0; i < step.buffers.size(); ++i) {
      const int slot = step.buffers[i];
      context.buffers.push_back(slot < 0 ? nullptr : run.memory[static_cast<std::size_t>(slot)]);
      if (slot < 0) context.tiles.push_back(static_cast<int>(i));
    }
    args.epilogue = call_epilogue<T>;
    args.epilogue_context = &context;
  } else {
    args.c = c;
    args.c_row_stride = step.rows[2](s);
    args.c_batch_offsets = items[2].data();
  }
  gemm(args, *run.pool);
}

void run_host(const Step& step, const HostLaunch& launch, const RunState& run) {
  const Graph& graph = run.program->graph;
  const Node& node = graph.node(launch.node);
  auto array_at = [&](const Type& type, int slot) {
    const Type fixed = bind_sizes(type, run.bindings);
    std::vector<std::int64_t> shape;
    for (const Dim& d : fixed.shape) shape.push_back(d.value());
    const auto bytes = static_cast<std::size_t>(bytes_for(type.dtype, fixed.size().value()));
    return Array(type.dtype, std::move(shape), {run.memory[static_cast<std::size_t>(slot)], bytes}, nullptr);
  };
  std::vector<Array> operands;
  for (std::size_t i = 0; i < node.operands.size(); ++i) operands.push_back(array_at(graph.type(node.operands[i]), step.operands[i]));
  const std::vector<Array> results = evaluate_node(*node.op, bind_sizes(node.attrs, run.bindings), operands);
  for (std::size_t i = 0; i < results.size(); ++i)
    std::memcpy(run.memory[static_cast<std::size_t>(step.results[i])], results[i].bytes().data(), results[i].bytes().size());
}

}  // namespace

void execute(const Step& step, const RunState& run) {
  if (const auto* kernel = std::get_if<KernelLaunch>(&step.launch->what)) return run_kernel(step, *kernel, run);
  if (const auto* host = std::get_if<HostLaunch>(&step.launch->what)) return run_host(step, *host, run);
  const auto& product = std::get<ProductLaunch>(step.launch->what);
  if (run.program->graph.type(product.product.dot).dtype == f64) run_product<double>(step, product, run);
  else run_product<float>(step, product, run);
}

#ifdef __x86_64__
FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }  // flush to zero, denormals are zero
FlushDenormals::~FlushDenormals() { _mm_setcsr(saved_); }
void flush_denormals(ThreadPool& pool) {
  pool.parallel_for(pool.size(), 1, [](std::int64_t, std::int64_t, int worker) {
    if (worker > 0) _mm_setcsr(_mm_getcsr() | 0x8040);
  });
}
#else
FlushDenormals::FlushDenormals() : saved_(0) {}
FlushDenormals::~FlushDenormals() = default;
void flush_denormals(ThreadPool&) {}
#endif

}  // namespace rlx::cpu
