// Graphs, calls by name, sessions and executables of the C interface.
#include <map>
#include <optional>

#include "handles.h"
#include "rlx/program_file.h"
#include "rlx/registry.h"
#include "rlx/text.h"
#include "rlx/transform.h"

namespace rlx::c {
namespace {

thread_local std::optional<SourceLine> place;

Value value_of(const rlx_graph& graph, rlx_value value) {
  if (value < 0 || static_cast<std::size_t>(value) >= graph.values.size())
    fail("there is no value {} (allowed: 0..{})", value, static_cast<std::int64_t>(graph.values.size()) - 1);
  return graph.values[static_cast<std::size_t>(value)];
}

rlx_value number_of(rlx_graph& graph, Value value) {
  graph.values.push_back(value);
  return static_cast<rlx_value>(graph.values.size() - 1);
}

template <class T>
std::span<const T> list_of(const T* items, std::size_t count) {
  if (count > 0) given(items, "a list");
  return {items, count};
}

CallArgument argument_of(const rlx_graph& graph, const rlx_argument& argument) {
  const auto& as = argument.as;
  switch (argument.kind) {
    case RLX_ARG_BOOL: return as.integer != 0;
    case RLX_ARG_INTEGER: return as.integer;
    case RLX_ARG_NUMBER: return as.number;
    case RLX_ARG_TEXT: return text(as.text, "a text");
    case RLX_ARG_DTYPE: return dtype_of(as.dtype);
    case RLX_ARG_INTEGERS: {
      const auto list = list_of(as.integers, argument.count);
      return std::vector<std::int64_t>(list.begin(), list.end());
    }
    case RLX_ARG_NUMBERS: {
      const auto list = list_of(as.numbers, argument.count);
      return std::vector<double>(list.begin(), list.end());
    }
    case RLX_ARG_DIMS: return dims_of(as.dims, argument.count);
    case RLX_ARG_VALUE: return value_of(graph, as.value);
    case RLX_ARG_VALUES: {
      Values values;
      for (const rlx_value each : list_of(as.values, argument.count)) values.push_back(value_of(graph, each));
      return values;
    }
  }
  fail("there is no kind {} of arguments", static_cast<int>(argument.kind));
}

Values call(rlx_graph& graph, const std::string& builder, std::span<const rlx_argument> given_arguments) {
  std::vector<CallArgument> arguments;
  std::map<std::string, CallArgument> named;
  for (const rlx_argument& argument : given_arguments) {
    CallArgument made = argument_of(graph, argument);
    if (argument.name != nullptr) named[argument.name] = std::move(made);
    else if (named.empty()) arguments.push_back(std::move(made));
    else fail("rlx.{}: an argument by position stands behind one by name", builder);
  }
  if (!place) return apply(builder, arguments, named);
  const Place at(*place);
  return apply(builder, arguments, named);
}

std::vector<std::string> texts(const char* const* names, std::size_t count) {
  std::vector<std::string> result;
  for (const char* name : list_of(names, count)) result.push_back(text(name, "a name"));
  return result;
}

/// What rlx_builder_documentation gives, with the 0 at its end.
const std::vector<std::string>& documentation() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made;
    for (const Builder& builder : builders()) made.push_back(fmt::format("{}\n{}", builder.declaration, builder.comment));
    return made;
  }();
  return all;
}

std::map<std::string, Feed> feeds_of(const char* const* names, const rlx_array* const* inputs, std::size_t count) {
  std::map<std::string, Feed> feeds;
  const auto arrays = list_of(inputs, count);
  const auto all_names = texts(names, count);
  for (std::size_t i = 0; i < count; ++i) feeds.emplace(all_names[i], given(arrays[i], "an array").array);
  return feeds;
}

Device device_of(const char* name) { return name == nullptr ? Device::usual() : Device::named(name); }

/// All results or none.
void give(const Outputs& results, rlx_array** outputs, std::size_t capacity, std::size_t* count) {
  if (results.size() > capacity) fail("run: {} outputs (room for {})", results.size(), capacity);
  std::vector<std::unique_ptr<rlx_array>> made;
  for (std::size_t i = 0; i < results.size(); ++i) made.push_back(std::make_unique<rlx_array>(rlx_array{results[i]}));
  if (!made.empty()) given(outputs, "the place for the outputs");
  for (std::size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
  if (count != nullptr) *count = results.size();
}

}  // namespace

Dims dims_of(const rlx_dim* shape, std::size_t rank) {
  Dims dims;
  for (const rlx_dim& dim : list_of(shape, rank)) dims.push_back(dim.symbol == nullptr ? Dim(dim.size) : Dim::symbol(dim.symbol, dim.size));
  return dims;
}

}  // namespace rlx::c

using namespace rlx::c;

void rlx_set_place(const char* file, int line) {
  guarded([&] { place = file == nullptr ? std::nullopt : std::optional(rlx::SourceLine{file, line}); });
}

rlx_status rlx_graph_new(const char* name, rlx_graph** out) {
  return guarded([&] { give(out, "the place for the graph", std::make_unique<rlx_graph>(rlx::Graph(text(name, "the name")))); });
}

rlx_status rlx_graph_parse(const char* source, rlx_graph** out) {
  return guarded(
      [&] { give(out, "the place for the graph", std::make_unique<rlx_graph>(rlx::parse_graph(text(source, "the text"), "graph"))); });
}

void rlx_graph_free(rlx_graph* graph) { delete graph; }

rlx_status rlx_graph_input(rlx_graph* graph, rlx_input_kind kind, const char* name, rlx_dtype dtype, const rlx_dim* shape, std::size_t rank,
                           rlx_value* out) {
  return guarded([&] {
    if (kind < RLX_INPUT || kind > RLX_STATE) rlx::fail("there is no kind {} of inputs", static_cast<int>(kind));
    const rlx::Input input{text(name, "the name"), static_cast<rlx::InputKind>(kind), {dtype_of(dtype), dims_of(shape, rank)}};
    rlx_graph& to = given(graph, "the graph");
    given(out, "the place for the value") = number_of(to, to.graph.add_input(input));
  });
}

rlx_status rlx_graph_constant(rlx_graph* graph, const rlx_array* array, rlx_value* out) {
  return guarded([&] {
    rlx_graph& to = given(graph, "the graph");
    given(out, "the place for the value") = number_of(to, to.graph.constant(given(array, "the array").array));
  });
}

rlx_status rlx_graph_output(rlx_graph* graph, const char* name, rlx_value value) {
  return guarded([&] {
    rlx_graph& to = given(graph, "the graph");
    to.graph.output(text(name, "the name"), value_of(to, value));
  });
}

rlx_status rlx_graph_grad(const rlx_graph* graph, const char* const* names, std::size_t count, rlx_graph** out) {
  return guarded([&] {
    give(out, "the place for the graph",
         std::make_unique<rlx_graph>(rlx::grad_graph(given(graph, "the graph").graph, texts(names, count), true)));
  });
}

rlx_status rlx_graph_text(rlx_graph* graph, const char** out) {
  return guarded([&] {
    rlx_graph& from = given(graph, "the graph");
    from.text = rlx::to_text(from.graph);
    given(out, "the place for the text") = from.text.c_str();
  });
}

std::size_t rlx_builder_count(void) { return rlx::builders().size(); }
const char* rlx_builder_name(std::size_t i) { return i < rlx_builder_count() ? rlx::builders()[i].name.data() : nullptr; }
const char* rlx_builder_documentation(std::size_t i) {
  const char* found = nullptr;
  guarded([&] { found = i < rlx_builder_count() ? documentation()[i].c_str() : nullptr; });
  return found;
}

rlx_status rlx_apply(rlx_graph* graph, const char* builder, const rlx_argument* arguments, std::size_t argument_count, rlx_value* results,
                     std::size_t capacity, std::size_t* count) {
  return guarded([&] {
    rlx_graph& to = given(graph, "the graph");
    const rlx::Values made = call(to, text(builder, "the name"), list_of(arguments, argument_count));
    if (made.size() > capacity) rlx::fail("rlx.{}: {} results (room for {})", builder, made.size(), capacity);
    for (std::size_t i = 0; i < made.size(); ++i) given(results, "the place for the results"), results[i] = number_of(to, made[i]);
    if (count != nullptr) *count = made.size();
  });
}

rlx_status rlx_session_new(int threads, const char* precision, rlx_session** out) {
  return rlx_session_new_on("cpu", threads, precision, out);
}

rlx_status rlx_session_new_on(const char* device, int threads, const char* precision, rlx_session** out) {
  return guarded([&] {
    const std::string word = precision == nullptr ? "f32" : precision;
    const auto found = rlx::precision_named(word);
    if (!found) rlx::fail("there is no precision '{}' (allowed: f32, bf16, f16, int8)", word);
    give(out, "the place for the session",
         std::make_unique<rlx_session>(rlx::Session(device_of(device), {.threads = threads, .precision = *found})));
  });
}

void rlx_session_free(rlx_session* session) { delete session; }

rlx_status rlx_compile(const rlx_session* session, const rlx_graph* graph, rlx_executable** out) {
  return guarded([&] {
    give(out, "the place for the executable",
         std::make_unique<rlx_executable>(given(session, "the session").session.compile(given(graph, "the graph").graph)));
  });
}

void rlx_executable_free(rlx_executable* executable) { delete executable; }

rlx_status rlx_set_param(rlx_executable* executable, const char* name, const rlx_array* value) {
  return guarded(
      [&] { given(executable, "the executable").executable.set_param(text(name, "the name"), given(value, "the array").array); });
}

rlx_status rlx_program_save(const rlx_executable* executable, const char* path, int weights_inside) {
  return guarded([&] {
    using Weights = rlx::ProgramFile::Weights;
    rlx::ProgramFile::save(text(path, "the path"), std::span(&given(executable, "the executable").executable, 1), {},
                           weights_inside != 0 ? Weights::inside : Weights::outside);
  });
}

rlx_status rlx_program_open(const char* path, const char* device, int threads, rlx_executable** out) {
  return guarded([&] {
    auto& made = given(out, "the place for the executable");
    made = new rlx_executable{rlx::ProgramFile::load(text(path, "the path"), device_of(device), {.threads = threads})};
  });
}

rlx_status rlx_run(const rlx_executable* executable, const char* const* names, const rlx_array* const* inputs, std::size_t input_count,
                   rlx_array** outputs, std::size_t capacity, std::size_t* count) {
  return guarded(
      [&] { give(given(executable, "the executable").executable.run(feeds_of(names, inputs, input_count)), outputs, capacity, count); });
}

rlx_status rlx_run_start(const rlx_executable* executable, const char* const* names, const rlx_array* const* inputs,
                         std::size_t input_count, rlx_pending** out) {
  return guarded([&] {
    auto& place_of_run = given(out, "the place for the run");
    place_of_run = new rlx_pending{given(executable, "the executable").executable.run_async(feeds_of(names, inputs, input_count))};
  });
}

int rlx_pending_ready(const rlx_pending* pending) { return pending->run.ready() ? 1 : 0; }
void rlx_pending_free(rlx_pending* pending) { delete pending; }

rlx_status rlx_pending_outputs(const rlx_pending* pending, rlx_array** outputs, std::size_t capacity, std::size_t* count) {
  return guarded([&] { give(given(pending, "the run").run.results(), outputs, capacity, count); });
}
