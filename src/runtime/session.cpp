#include "rlx/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/cpu_count.h"
#include "base/names.h"
#include "ir/graph_data.h"
#include "ir/sources.h"
#include "passes/expand.h"
#include "runtime/executable.h"
#include "runtime/symbols.h"

namespace rlx {

std::string Device::description() const {
  return fmt::format("{}, {} threads", cpu::describe(cpu::cpu_features(), cpu::cpu_level()), granted_cpus());
}

Session::State::State(SessionOptions given)
    : options(std::move(given)),
      pool(options.threads > 0 ? options.threads : granted_cpus()),
      jit(cpu::cpu_level(), options.cache_folder.value_or(cpu::default_cache_folder())) {
  cpu::flush_denormals(pool);
}

Session::Session(Device, SessionOptions options) : state_(std::make_shared<State>(std::move(options))) {}

int Session::threads() const { return state_->pool.size(); }

CompileCounters Session::counters() const {
  const cpu::JitCounters c = state_->jit.counters();
  return {c.compiled, c.from_disk, c.shared, c.cache_error};
}

namespace {

/// What a graph must keep beyond the rules of the IR to be run.
void check_outputs(const Graph& graph) {
  if (graph.outputs().empty()) fail("graph '{}': it has no outputs", graph.name());
  std::map<std::string_view, const Type*> states;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::state) states.emplace(input.name, &input.type);
  for (const auto& [name, value] : graph.outputs()) {
    const auto state = states.find(name);
    if (state != states.end() && !(*state->second == value.type()))
      fail("graph '{}': output '{}' is {}, but the state of that name is {}", graph.name(), name, value.type().to_string(),
           state->second->to_string());
  }
}

}  // namespace

Executable Session::compile(const Graph& graph) const {
  check_outputs(graph);
  const SessionOptions& options = state_->options;
  const Graph primitives = expand(graph, [](const Graph&, const Node&) { return false; });
  cpu::Program program = cpu::lower(primitives, {options.claims, options.fuse, options.allow_host});
  std::vector<KernelText> texts;
  for (cpu::Launch& launch : program.launches)
    for (const cpu::GeneratedKernel* kernel : launch.kernels()) texts.push_back(kernel->text);
  const auto functions = state_->jit.load(texts, state_->pool);
  std::size_t next = 0;
  for (cpu::Launch& launch : program.launches)
    for (cpu::GeneratedKernel* kernel : launch.kernels()) kernel->function = functions[next++];
  return Executable(std::make_shared<Executable::State>(state_, graph, std::move(program)));
}

const Array& Outputs::at(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const auto& [known, array] : items_) {
    if (known == name) return array;
    names.push_back(known);
  }
  fail("output '{}' is unknown{}", name, near_hint(name, names));
}

namespace {

std::vector<std::int64_t> static_shape(const Type& type, const Bindings& bindings) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.evaluate(bindings));
  return shape;
}

/// The array that was fed under a name, with the dtype checked; a flat one takes the shape of a static type.
Array checked(std::string_view what, std::string_view name, const Type& type, const Feed& feed) {
  Array array = feed.array();
  if (array.dtype() != type.dtype)
    fail("{} '{}': elements are {}, must be {}", what, name, rlx::name(array.dtype()), rlx::name(type.dtype));
  if (feed.flat() && type.rank() != 1) {
    if (!type.is_static()) fail("{} '{}': {} needs an array with a shape, given {} values", what, name, type.to_string(), array.size());
    if (type.size().value() != array.size())
      fail("{} '{}': {} values for {} ({} elements)", what, name, array.size(), type.to_string(), type.size().value());
    array = Array(array.dtype(), static_shape(type, {}), array.bytes(), array.owner());
  }
  const auto alignment = static_cast<std::uintptr_t>(std::max(1, info(type.dtype).bits / 8));
  if (reinterpret_cast<std::uintptr_t>(array.bytes().data()) % std::min<std::uintptr_t>(alignment, 8) != 0) {
    Array aligned(array.dtype(), array.shape());
    std::memcpy(aligned.mutable_bytes().data(), array.bytes().data(), array.bytes().size());
    return aligned;
  }
  return array;
}

std::string_view word(InputKind kind) { return kind == InputKind::param ? "parameter" : kind == InputKind::state ? "state" : "input"; }
std::string_view with_article(InputKind kind) {
  return kind == InputKind::param ? "a parameter" : kind == InputKind::state ? "a state" : "an input";
}

/// The index of an input of the wanted kind. Throws Error with near names.
std::size_t find_input(const Executable::State& state, std::string_view name, InputKind kind) {
  const auto& inputs = state.source.inputs();
  const std::size_t i = state.input_index(name);
  if (i < inputs.size() && inputs[i].first.kind == kind) return i;
  std::vector<std::string_view> names;
  for (const auto& [input, value] : inputs)
    if (input.kind == kind) names.push_back(input.name);
  if (i < inputs.size())
    fail("graph '{}': '{}' is {}, not {}", state.source.name(), name, with_article(inputs[i].first.kind), with_article(kind));
  fail("graph '{}': {} '{}' is unknown{}", state.source.name(), word(kind), name, near_hint(name, names));
}

/// Whether some sizes of the symbols give the type this shape, each axis by itself.
bool may_fit(const Type& type, const std::vector<std::int64_t>& shape) {
  if (static_cast<int>(shape.size()) != type.rank()) return false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] < type.shape[axis].lower() || shape[axis] > type.shape[axis].upper()) return false;
  return true;
}

/// The array to keep under a name until it is replaced: nobody but the caller knows how long bytes without an owner live.
Array kept(const Input& input, const Feed& feed) {
  Array array = checked(word(input.kind), input.name, input.type, feed);
  if (!may_fit(input.type, array.shape()))
    fail("{} '{}': shape {} does not fit {}", word(input.kind), input.name, to_string(Dims(array.shape().begin(), array.shape().end())),
         input.type.to_string());
  if (array.owner()) return array;
  Array copy(array.dtype(), array.shape());
  std::copy(array.bytes().begin(), array.bytes().end(), copy.mutable_bytes().begin());
  return copy;
}

Array zeros(const Input& state) {
  if (!state.type.is_static()) fail("state '{}': {} has no size before it is set", state.name, state.type.to_string());
  return Array(state.type.dtype, static_shape(state.type, {}));
}

}  // namespace

void Executable::set_param(std::string_view name, Feed value) {
  const std::size_t i = find_input(*state_, name, InputKind::param);
  Array array = kept(state_->source.inputs()[i].first, value);
  const std::scoped_lock lock(state_->mutex);
  state_->bound[i] = std::move(array);
  state_->packed.clear();
}

std::vector<std::string> Executable::missing_params() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<std::string> names;
  const auto& inputs = state_->source.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].first.kind == InputKind::param && !state_->bound[i].owner() && state_->bound[i].bytes().data() == nullptr)
      names.push_back(inputs[i].first.name);
  return names;
}

Array Executable::state(std::string_view name) const {
  const std::size_t i = find_input(*state_, name, InputKind::state);
  const std::scoped_lock lock(state_->mutex);
  if (state_->bound[i].bytes().data() == nullptr) state_->bound[i] = zeros(state_->source.inputs()[i].first);
  return state_->bound[i];
}

void Executable::set_state(std::string_view name, Feed value) {
  const std::size_t i = find_input(*state_, name, InputKind::state);
  Array array = kept(state_->source.inputs()[i].first, value);
  const std::scoped_lock lock(state_->mutex);
  state_->bound[i] = std::move(array);
}

namespace {

/// One run: the arrays of all inputs, the sizes, and the memory of every slot.
class Run {
 public:
  Run(Executable::State& state, const std::map<std::string, Feed>& inputs) : state_(state), arena_(state.arenas->borrow()) {
    gather_inputs(inputs);
    bind_symbols();
    make_outputs();
    place_slots();
    run_.program = &state_.program;
    run_.pool = &state_.session->pool;
    run_.level = cpu::cpu_level();
    run_.packed_f32 = [this](const cpu::Step& step, const cpu::GemmArgs<float>& args) { return packed(step, args); };
    run_.packed_f64 = [this](const cpu::Step& step, const cpu::GemmArgs<double>& args) { return packed(step, args); };
  }

  void execute() {
    const cpu::FlushDenormals flush;
    for (const cpu::Step& step : state_.steps) cpu::execute(step, run_);
  }
  void time(std::vector<LaunchReport>& reports, int repeats) {
    const cpu::FlushDenormals flush;
    for (int r = 0; r < repeats; ++r)
      for (std::size_t i = 0; i < state_.steps.size(); ++i) {
        const auto begin = std::chrono::steady_clock::now();
        cpu::execute(state_.steps[i], run_);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (r == 0 || seconds < reports[i].seconds) reports[i].seconds = seconds;
      }
  }
  const Bindings& bindings() const { return run_.bindings; }

  Outputs finish() {
    const auto& names = state_.source.outputs();
    std::vector<std::pair<std::string, Array>> items;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!direct_[i])
        std::memcpy(outputs_[i].mutable_bytes().data(), run_.memory[static_cast<std::size_t>(state_.output_slots[i])],
                    outputs_[i].bytes().size());
      items.emplace_back(names[i].first, outputs_[i]);
    }
    update_states(items);
    return Outputs(std::move(items));
  }

 private:
  void gather_inputs(const std::map<std::string, Feed>& fed) {
    const auto& inputs = state_.source.inputs();
    for (const auto& [name, feed] : fed) find_input(state_, name, InputKind::input);
    const std::scoped_lock lock(state_.mutex);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Input& input = inputs[i].first;
      if (input.kind == InputKind::input) {
        auto it = fed.find(input.name);
        if (it == fed.end()) fail("graph '{}': input '{}' ({}) is missing", state_.source.name(), input.name, input.type.to_string());
        arrays_.push_back(checked("input", input.name, input.type, it->second));
      } else {
        if (state_.bound[i].bytes().data() == nullptr) {
          if (input.kind == InputKind::param && !(input.type.size() == Dim(0)))
            fail("graph '{}': parameter '{}' ({}) is not bound", state_.source.name(), input.name, input.type.to_string());
          if (input.kind == InputKind::state) state_.bound[i] = zeros(input);
        }
        arrays_.push_back(state_.bound[i]);
      }
    }
  }
  void bind_symbols() {
    SymbolBinder binder;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const Input& input = state_.source.inputs()[i].first;
      binder.bind(fmt::format("{} '{}'", word(input.kind), input.name), input.type, arrays_[i].shape());
    }
    run_.bindings = binder.finish();
    for (const std::string& symbol : state_.program.symbols) run_.symbols.push_back(run_.bindings.at(symbol));
  }
  void make_outputs() {
    for (const auto& [name, value] : state_.source.outputs())
      outputs_.emplace_back(value.dtype(), static_shape(value.type(), run_.bindings));
    direct_.assign(outputs_.size(), false);
  }
  void place_slots() {
    for (const Slot& slot : state_.slots) {
      switch (slot.place) {
        case Slot::Place::input: run_.memory.push_back(const_cast<std::byte*>(arrays_[slot.index].bytes().data())); break;
        case Slot::Place::constant:
          run_.memory.push_back(
              const_cast<std::byte*>(constant_value(state_.program.graph.node(static_cast<std::int32_t>(slot.index)))->bytes().data()));
          break;
        case Slot::Place::arena: run_.memory.push_back(arena_->data() + state_.plan.offsets[slot.index]); break;
        case Slot::Place::output:
          run_.memory.push_back(outputs_[slot.index].mutable_bytes().data());
          direct_[slot.index] = true;
          break;
      }
    }
  }
  template <class T>
  std::shared_ptr<const void> packed(const cpu::Step& step, const cpu::GemmArgs<T>& args) {
    const std::scoped_lock lock(state_.mutex);
    const Slot& slot = state_.slots[static_cast<std::size_t>(step.b)];
    const Array& weights = slot.place == Slot::Place::input
                               ? arrays_[slot.index]
                               : *constant_value(state_.program.graph.node(static_cast<std::int32_t>(slot.index)));
    auto& mine = state_.packed[&step];
    if (!mine.panels || mine.weights.bytes().data() != weights.bytes().data()) {
      const auto offset = args.b.data - reinterpret_cast<const T*>(weights.bytes().data());
      mine = {weights,
              state_.session->packed.get<T>(weights, offset, args.b.row_stride, args.b.col_stride, args.k, args.n, *run_.pool, run_.level)};
    }
    return mine.panels;
  }
  void update_states(const std::vector<std::pair<std::string, Array>>& items) {
    const auto& inputs = state_.source.inputs();
    for (const auto& [name, array] : items) {
      const std::size_t i = state_.input_index(name);
      if (i >= inputs.size() || inputs[i].first.kind != InputKind::state) continue;
      const std::scoped_lock lock(state_.mutex);
      state_.bound[i] = array;
    }
  }

  Executable::State& state_;
  std::unique_ptr<Arena, std::function<void(Arena*)>> arena_;
  std::vector<Array> arrays_, outputs_;
  std::vector<bool> direct_;
  cpu::RunState run_;
};

}  // namespace

Outputs Executable::run(const std::map<std::string, Feed>& inputs) const {
  Run run(*state_, inputs);
  run.execute();
  return run.finish();
}

std::int64_t Executable::arena_bytes() const { return state_->plan.bytes; }

void Executable::trim() const { state_->arenas->trim(); }

std::vector<LaunchReport> Executable::profile(const std::map<std::string, Feed>& inputs, int repeats) const {
  Run run(*state_, inputs);
  std::vector<LaunchReport> reports;
  const Graph& graph = state_->program.graph;
  for (const cpu::Launch& launch : state_->program.launches) {
    LaunchReport report{launch.name(), "host", {}, 0, 0, 0};
    for (ValueId v : launch.writes) report.types += (report.types.empty() ? "" : ", ") + graph.type(v).to_string();
    auto bytes_of = [&](ValueId v) {
      return static_cast<double>(bytes_for(graph.type(v).dtype, graph.type(v).size().evaluate(run.bindings())));
    };
    if (const auto* kernel = std::get_if<cpu::GeneratedKernel>(&launch.what)) {
      const Cost c = cost(kernel->kernel, run.bindings());
      report.kind = "kernel";
      report.flops = c.flops;
      report.bytes = c.bytes;
    } else {
      for (ValueId v : launch.reads) report.bytes += bytes_of(v);
      for (ValueId v : launch.writes) report.bytes += bytes_of(v);
      if (const auto* product = std::get_if<cpu::Product>(&launch.what)) {
        report.kind = "claim";
        const Dim size = graph.type(product->dot).size() * product->depth.extent * 2;
        report.flops = static_cast<double>(size.evaluate(run.bindings()));
      }
    }
    reports.push_back(std::move(report));
  }
  run.time(reports, repeats);
  return reports;
}

}  // namespace rlx
