#include "graph_input.h"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <set>

#include <CLI/CLI.hpp>

#include "base/files/mapped_file.h"
#include "base/names.h"
#include "bounded_input.h"
#include "ir/symbols.h"
#include "rlx/text.h"

namespace rlx::command {
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
  fail("graph '{}': --size {}={} contradicts the given values, by which {} is {}", graph.name(), symbol, given, symbol, found);
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

void add_array(std::string name, Array array, NamedArrays& into) {
  if (!into.emplace(name, std::move(array)).second) fail("a value for {} is given twice", quote_name(name));
}

void read_all_tensors(const std::string& file, NamedArrays& into) {
  const TensorFile tensors = load_safetensors(file);
  for (const auto& [name, array] : tensors.arrays) add_array(name, array, into);
}

/// The tensor that `place` names, "FILE.safetensors:TENSOR"; behind a file alone the one called `name`, or the file's only one.
Array read_tensor(const std::string& name, const std::string& place) {
  constexpr std::string_view ending = ".safetensors";
  const std::size_t end = place.rfind(ending) + ending.size();
  const TensorFile file = load_safetensors(place.substr(0, end));
  const std::string wanted = end < place.size() ? place.substr(end + 1) : name;
  if (const auto found = file.arrays.find(wanted); found != file.arrays.end()) return found->second;
  if (end == place.size() && file.arrays.size() == 1) return file.arrays.begin()->second;
  std::vector<std::string_view> known;
  for (const auto& [tensor, array] : file.arrays) known.push_back(tensor);
  fail("{}: there is no tensor {}{}; {}:TENSOR names another", place.substr(0, end), quote_name(wanted), near_hint(wanted, known),
       place.substr(0, end));
}

/// Whether it is "FILE.safetensors" or "FILE.safetensors:TENSOR".
bool names_safetensors(std::string_view place) {
  return place.ends_with(".safetensors") || place.find(".safetensors:") != std::string_view::npos;
}

}  // namespace

bool looks_like_graph_text(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    if (!text.starts_with('#')) break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  return text.starts_with("graph") && text.size() > 5 && blank.find(text[5]) != std::string_view::npos;
}

bool looks_like_safetensors(std::string_view bytes) { return bytes.size() > 8 && bytes[8] == '{'; }

SavedGraph read_graph(const std::string& file) {
  if (file == "-") {
    return {parse_graph(read_bounded(std::cin, "standard input"), "standard input"), {}};
  }
  const MappedFile mapped = MappedFile::open(file);
  const std::string_view bytes(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  if (!looks_like_graph_text(bytes) && looks_like_safetensors(bytes)) return load_graph(file);
  return {parse_graph(bytes, file), {}};
}

void read_arrays(const std::vector<std::string>& arguments, NamedArrays& into) {
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos && argument.ends_with(".safetensors")) {
      read_all_tensors(argument, into);
    } else if (equals == std::string::npos || equals == 0 || equals + 1 == argument.size()) {
      throw CLI::ValidationError(fmt::format("{}: not of the form NAME=FILE.npy, NAME=FILE.safetensors or FILE.safetensors", argument));
    } else {
      const std::string name = argument.substr(0, equals), place = argument.substr(equals + 1);
      add_array(name, names_safetensors(place) ? read_tensor(name, place) : load_npy(place), into);
    }
  }
}

std::map<std::string, std::int64_t> parse_sizes(const std::vector<std::string>& arguments) {
  std::map<std::string, std::int64_t> sizes;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    std::int64_t size = 0;
    const char* end = argument.data() + argument.size();
    const auto parsed = equals == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                    : std::from_chars(argument.data() + equals + 1, end, size);
    if (equals == 0 || parsed.ec != std::errc() || parsed.ptr != end)
      throw CLI::ValidationError(fmt::format("{}: not of the form NAME=SIZE", argument));
    if (!sizes.emplace(argument.substr(0, equals), size).second)
      throw CLI::ValidationError(fmt::format("{}: the symbol is given twice", argument));
  }
  return sizes;
}

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

}  // namespace rlx::command
