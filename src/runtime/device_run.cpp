// A run on a device with memory of its own: kernels are put behind each other there; what no kernel computes is the host's, on any device.
#include "ir/array_type.h"
#include "ir/reference.h"
#include "ops/control/control.h"
#include "runtime/run.h"

namespace rlx {

void Run::execute_on_device() {
  auto list = state_.lists.begin();
  for (std::size_t i = 0; i < state_.steps.size();) {
    if (list != state_.lists.end() && list->begin == i) {
      launch_list(*list);
      i = (list++)->end;
    } else if (const std::size_t step = i++; !state_.is_prepared[step]) {
      run_on_device(state_.steps[step]);
    }
  }
}

void Run::launch_list(const DeviceList& list) {
  std::vector<DeviceLaunch> launches;
  std::vector<std::byte*> places;
  launches.reserve(list.kernels.size());
  places.reserve(list.buffers);  // launches point there
  for (const DeviceList::Kernel& kernel : list.kernels) {
    const std::size_t first = places.size();
    kernel.step->add_places(run_.memory, places);
    launches.push_back({kernel.number, std::span(places).subspan(first), kernel.step->positions(run_.sizes.data()), kernel.after});
  }
  state_.kernels->launch_list(&list, launches, run_.symbols);
}

void Run::run_on_device(const LaunchStep& step) {
  if (step.launch->kind == Launch::Kind::claim) fail_internal("run: {} is computed by code of the host", step.launch->name);
  if (step.launch->kind != Launch::Kind::kernel) return run_other(step);
  for (std::size_t i = 0; i < step.kernels.size(); ++i)
    if (const std::int64_t positions = step.kernels[i].positions(run_.sizes.data()); positions > 0)
      state_.kernels->launch(step.launch->kernels[i].number, step.kernels[i].places<std::byte*>(run_.memory), run_.symbols, positions);
}

void Run::run_other(const LaunchStep& step) {
  if (step.launch->kind == Launch::Kind::control) run_control(step);
  else run_on_host(step);
}

std::vector<Array> Run::operands_of(const LaunchStep& step) const {
  std::vector<Array> operands;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const Type type = bind_sizes(state_.program.graph.type(step.launch->reads[i]), run_.bindings);
    const auto bytes = static_cast<std::size_t>(bytes_for(type.dtype, type.size().value())),
               at = static_cast<std::size_t>(step.operands[i]);
    operands.emplace_back(type.dtype, static_shape(type), std::span<const std::byte>(run_.memory[at], bytes), owners_[at]);
  }
  return operands;
}

std::vector<std::byte*> Run::result_places(const LaunchStep& step) const {
  std::vector<std::byte*> places;
  for (int slot : step.results) places.push_back(run_.memory[static_cast<std::size_t>(slot)]);
  return places;
}

/// What the CPU's own code computes: the operands go there, and the results come back, but for what only the CPU's code reads.
void Run::run_on_host(const LaunchStep& step) {
  std::vector<Array> operands = operands_of(step), results;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto known = on_host_.find(step.launch->reads[i]);
    operands[i] = known == on_host_.end() ? storage_.take(operands[i]) : known->second;
  }
  if (const auto compiled = state_.on_the_host.find(step.launch); compiled != state_.on_the_host.end()) {
    std::map<std::string, Feed> fed;
    for (std::size_t i = 0; i < operands.size(); ++i) fed.emplace(std::to_string(i), operands[i]);
    for (auto& [name, result] : compiled->second.run(fed)) results.push_back(result);
  } else {
    results = evaluate_node(state_.program.graph, step.launch->node.node, run_.bindings, operands, {});
  }
  const std::vector<std::byte*> places = result_places(step);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto stays = state_.of_host.find(step.launch->writes[i]);
    if (stays != state_.of_host.end()) on_host_[stays->first] = results[i];
    if (stays == state_.of_host.end() || !stays->second) storage_.put(results[i], places[i]);
  }
}

/// Regions run on the device. Of cond and while only the predicate comes to the host.
void Run::run_control(const LaunchStep& step) {
  const Graph& graph = state_.program.graph;
  const Node& node = graph.node(step.launch->node.node);
  std::vector<Array> operands = operands_of(step);
  const std::vector<std::byte*> places = result_places(step);
  if (run_loop(node, operands, places)) return;
  const bool is_cond = node.op == &Op<Cond>::def(), is_while = node.op == &Op<While>::def();
  const Region condition = is_while ? Op<While>::from(node.attrs).condition : nullptr;
  const bool crosses = !is_cond && !is_while;  // all of it: the op's own evaluation reads what it is given
  const auto all = [](std::vector<Array> arrays, const auto& move) {
    for (Array& array : arrays) array = move(array);
    return arrays;
  };
  const auto take = [&](const Array& array) { return storage_.take(array); };
  const auto put = [&](const Array& array) { return storage_.put(array); };
  if (crosses) operands = all(std::move(operands), take);
  else if (is_cond) operands[0] = take(operands[0]);
  const auto run_inner = [&](const Region& region, std::span<const Array> given) {
    std::vector<Array> inputs(given.begin(), given.end());
    std::vector<Array> results = run_region(region, crosses ? all(std::move(inputs), put) : std::move(inputs));
    return crosses || region == condition ? all(std::move(results), take) : results;
  };
  const std::vector<Array> results = evaluate_node(graph, step.launch->node.node, run_.bindings, operands, run_inner);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (crosses) storage_.put(results[i], places[i]);
    else storage_.copy(places[i], results[i].bytes());
  }
}

}  // namespace rlx
