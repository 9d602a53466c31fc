#include "runtime/reports/example_values.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "ir/symbols.h"

namespace rlx {
namespace {

/// Uniform numbers in -1..1: Knuth's 64-bit congruential generator, whose high bits are good enough for data that is only timed.
class UniformNumbers {
 public:
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / static_cast<double>(1 << 23) - 1;
  }

 private:
  std::uint64_t state_ = 1;
};

Array made_up(const Type& type, const Bindings& sizes, UniformNumbers& numbers) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.evaluate(sizes));
  Array array(type.dtype, shape);
  if (type.dtype == f32) {
    for (float& value : array.mutable_values<float>()) value = static_cast<float>(numbers.next());
    return array;
  }
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, is_float(type.dtype) || is_complex(type.dtype) ? numbers.next() : 1);
  return array;
}

/// The sizes that shapes of given values say at once: axes whose size is a symbol alone.
void sizes_from_values(const Graph& graph, const NamedArrays& values, Bindings& sizes) {
  for (const auto& [input, value] : graph.inputs()) {
    const auto given = values.find(input.name);
    if (given == values.end() || given->second.rank() != input.type.rank()) continue;
    for (std::size_t axis = 0; axis < input.type.shape.size(); ++axis) {
      const std::string text = input.type.shape[axis].to_string();
      if (graph.symbols().count(text) != 0) sizes.emplace(text, given->second.shape()[axis]);
    }
  }
}

[[noreturn]] void fail_contradiction(const Graph& graph, const std::string& symbol, std::int64_t given, std::int64_t found) {
  fail("graph '{}': size {}={} contradicts the given values, by which {} is {}", graph.name(), symbol, given, symbol, found);
}

/// The sizes that were given are those that a run will find from the shapes.
void check_sizes(const Graph& graph, const std::map<std::string, std::int64_t>& given, const NamedArrays& values) {
  SymbolBinder binder;
  for (const auto& [input, value] : graph.inputs()) binder.bind("value of", input.name, input.type, values.at(input.name).shape());
  const Bindings found = binder.finish();
  for (const auto& [name, size] : given)
    if (const auto symbol = found.find(name); symbol != found.end() && symbol->second != size)
      fail_contradiction(graph, name, size, symbol->second);
}

Bindings choose_sizes(const Graph& graph, const std::map<std::string, std::int64_t>& given, std::int64_t default_size,
                      const NamedArrays& values) {
  const auto symbols = graph.symbols();
  std::vector<std::string_view> names;
  for (const auto& [name, bound] : symbols) names.push_back(name);
  Bindings sizes;
  sizes_from_values(graph, values, sizes);
  for (const auto& [name, size] : given) {
    const auto symbol = symbols.find(name);
    if (symbol == symbols.end()) fail("graph '{}': symbol {} is unknown{}", graph.name(), quote_name(name), near_hint(name, names));
    if (size < 1 || size > symbol->second)
      fail("graph '{}': size {} is out of range for symbol {} (allowed: 1..{})", graph.name(), size, name, symbol->second);
    const auto [found, added] = sizes.emplace(name, size);
    if (!added && found->second != size) fail_contradiction(graph, name, size, found->second);
  }
  for (const auto& [name, bound] : symbols) sizes.emplace(name, std::min(bound, default_size));
  return sizes;
}

}  // namespace

void fill_missing(const Graph& graph, const std::map<std::string, std::int64_t>& sizes, std::int64_t default_size, NamedArrays& values) {
  const Bindings bindings = choose_sizes(graph, sizes, default_size, values);
  UniformNumbers numbers;
  for (const auto& [input, value] : graph.inputs()) {
    if (values.count(input.name) == 0) values.emplace(input.name, made_up(input.type, bindings, numbers));
  }
  check_sizes(graph, sizes, values);
}

std::map<std::string, Feed> bind_values(Executable& executable, const Graph& graph, const NamedArrays& values) {
  std::set<std::string_view> kept;  // names of parameters and states
  for (const auto& [input, value] : graph.inputs())
    if (input.kind != InputKind::input) kept.insert(input.name);
  NamedArrays weights;
  std::map<std::string, Feed> inputs;
  for (const auto& [name, array] : values)
    if (kept.contains(name)) weights.emplace(name, array);
    else inputs.emplace(name, array);
  executable.set_params(weights);
  return inputs;
}

}  // namespace rlx
