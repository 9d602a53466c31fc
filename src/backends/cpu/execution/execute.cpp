#include "backends/cpu/execution/execute.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "base/checked.h"
#include "ir/reference.h"

namespace rlx::cpu {

std::vector<Step> make_steps(const Program& program, SizeTable& sizes, const std::function<int(ValueId)>& slot_of, CpuLevel level) {
  std::vector<Step> steps;
  const Preparation given{program, sizes, slot_of, level};
  for (const Launch& launch : program.launches) {
    Step& step = steps.emplace_back();
    step.launch = &launch;
    if (launch.kind == Launch::Kind::claim) step.work = dynamic_cast<const Work*>(launch.claimed.get());
    if (step.work) {
      step.work->prepare(step, given);
    } else if (launch.kind == Launch::Kind::kernel) {
      for (const GeneratedKernel& kernel : launch.kernels) step.kernels.push_back(prepare_kernel(kernel, sizes, slot_of));
    } else {
      for (ValueId v : launch.reads) step.operands.push_back(slot_of(v));
      for (ValueId v : launch.writes) step.results.push_back(slot_of(v));
    }
  }
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].work) steps[i].joined = steps[i].work->joined(std::span(steps).subspan(i));
  return steps;
}

void prepare_packing(Step& step, const Preparation& given, std::int64_t bytes) {
  step.operands = {given.slot_of(step.launch->reads[0])}, step.results = {slot_of_packed(given, step.launch->writes[0], bytes)};
}

int slot_of_packed(const Preparation& given, ValueId value, std::int64_t bytes) {
  const auto known = given.program.packed.find(value);
  if (known == given.program.packed.end())
    fail("program: packed weights are %{}.{} (allowed: what a launch packs)", value.node, value.result);
  if (!(known->second == Type{u8, {bytes}})) fail("program: packed weights are {} (allowed: u8[{}])", known->second.to_string(), bytes);
  return given.slot_of(value);
}

std::vector<std::int64_t> sizes_of(const Type& type, const RunState& run) {
  std::vector<std::int64_t> shape;
  for (const Dim& d : bind_sizes(type, run.bindings).shape) shape.push_back(d.value());
  return shape;
}

std::vector<Array> operands_of(const Step& step, const RunState& run) {
  std::vector<Array> operands;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const Type& type = run.program->graph.type(step.launch->reads[i]);
    const std::int64_t count = bind_sizes(type, run.bindings).size().value();
    const auto bytes = static_cast<std::size_t>(bytes_for(type.dtype, count)), at = static_cast<std::size_t>(step.operands[i]);
    operands.emplace_back(type.dtype, sizes_of(type, run), std::span<const std::byte>(run.memory[at], bytes), run.weights[at]);
  }
  return operands;
}

std::vector<std::byte*> result_places(const Step& step, const RunState& run) {
  std::vector<std::byte*> places;
  for (int slot : step.results) places.push_back(run.memory[static_cast<std::size_t>(slot)]);
  return places;
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

void run_kernel(const KernelStep& step, KernelFunction function, const RunState& run) {
  const auto buffers = step.places<void*>(run.memory);
  const std::int64_t count = step.positions(run.sizes.data());
  double work = 0;
  for (const auto& [runs, operations] : step.work) work += static_cast<double>(runs(run.sizes.data())) * operations;
  constexpr double worth_a_thread = 32768;  // operations: a few microseconds
  auto grain = static_cast<std::int64_t>(std::max(1.0, worth_a_thread / std::max(1.0, work)));
  constexpr std::int64_t line = 64;  // elements: parts of a flat kernel then begin on a line of the caches, whatever the type
  if (grain > line) grain = (grain + line - 1) / line * line;
  run.pool->parallel_for(count, grain,
                         [&](std::int64_t begin, std::int64_t end, int) { function(buffers.data(), run.symbols.data(), begin, end); });
}

void run_host(const Step& step, const RunState& run) {
  const Graph& graph = run.program->graph;
  const Node& node = graph.node(step.launch->node.node);
  const std::vector<Array> operands = operands_of(step, run);
  const std::vector<std::byte*> places = result_places(step, run);
  if (step.launch->kind == Launch::Kind::control && run.run_loop(node, operands, places)) return;
  const std::vector<Array> results = evaluate_node(graph, step.launch->node.node, run.bindings, operands, run.run_region);
  for (std::size_t i = 0; i < results.size(); ++i) std::memcpy(places[i], results[i].bytes().data(), results[i].bytes().size());
}

}  // namespace

void execute(const Step& step, const RunState& run) {
  if (step.work) return step.work->run(step, run);
  if (step.launch->kind != Launch::Kind::kernel) return run_host(step, run);
  for (std::size_t i = 0; i < step.kernels.size(); ++i) run_kernel(step.kernels[i], step.launch->kernels[i].function, run);
}

std::size_t execute_joined(std::span<const Step> steps, const RunState& run) {
  const std::size_t count = steps.front().joined;
  if (count == 1) execute(steps.front(), run);
  else steps.front().work->run_joined(steps.first(count), run);
  return count;
}

}  // namespace rlx::cpu
