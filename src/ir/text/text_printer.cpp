// The text form of a graph. Everything here has its counterpart in text_parser.cpp and text_values.cpp.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/sources.h"
#include "ir/text/text_arrays.h"

namespace rlx {
namespace {

constexpr std::int64_t most_spelled_out = 64;  // arrays above are written as their bytes

bool is_word(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || text.size() > 64 || !letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c >= ' ' && c <= '~') out += c;
    else out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + '"';
}

std::string name_text(std::string_view name) { return is_word(name) ? std::string(name) : quoted(name); }

/// The shortest decimal that reads back to the same bits; a NaN that is not the usual one carries its bits along.
std::string number_text(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (!std::isnan(value)) return fmt::format("{}", value);
  if (bits == std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN())) return "nan";
  return fmt::format("nan \"{:016x}\"", bits);
}

/// A component of an element: narrow types are printed as short as f32 allows.
std::string component_text(DType dtype, double value) {
  const bool wide = dtype == f64 || dtype == c128;
  return wide ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
}

std::string element_text(const Array& array, std::int64_t i) {
  switch (info(array.dtype()).kind) {
    case DTypeClass::boolean: return array.get_int(i) != 0 ? "true" : "false";
    case DTypeClass::signed_int: return std::to_string(array.get_int(i));
    case DTypeClass::unsigned_int: return std::to_string(array.get_uint(i));
    case DTypeClass::floating: return component_text(array.dtype(), array.get_double(i));
    case DTypeClass::complex: break;
  }
  const auto value = array.get_complex(i);
  return fmt::format("({}, {})", component_text(array.dtype(), value.real()), component_text(array.dtype(), value.imag()));
}

/// What reading the printed number gives: of a NaN, only the sign is kept.
double as_read(double value) { return std::isnan(value) ? std::copysign(std::numeric_limits<double>::quiet_NaN(), value) : value; }

/// False when the elements do not determine the bytes: odd NaNs, booleans above 1, the unused half of a last 4-bit pair.
bool bytes_follow_from_elements(const Array& array) {
  Array copy(array.dtype(), array.shape());
  for (std::int64_t i = 0; i < array.size(); ++i) {
    const std::complex<double> value = array.get_complex(i);
    if (is_integer(array.dtype())) copy.set_uint(i, array.get_uint(i));
    else copy.set_complex(i, {as_read(value.real()), as_read(value.imag())});
  }
  return copy == array;
}

std::string elements_text(const Array& array) {
  std::string out;
  for (std::int64_t i = 0; i < array.size(); ++i) out += (i ? ", " : "") + element_text(array, i);
  return "{" + out + "}";
}

std::string bytes_text(const Array& array) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "bytes \"";
  out.reserve(out.size() + 2 * array.bytes().size() + 1);
  for (std::byte byte : array.bytes()) {
    out += digits[std::to_integer<unsigned>(byte) >> 4];
    out += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return out + '"';
}

void collect_symbols(const Graph& graph, std::map<std::string, std::int64_t>& into) {
  for (const Node& node : graph.data().nodes) {
    for (const Type& type : node.results)
      for (const Dim& dim : type.shape) dim.collect_symbols(into);
    for (const Attr& attr : node.attrs) {
      if (const auto* dims = std::get_if<Dims>(&attr))
        for (const Dim& dim : *dims) dim.collect_symbols(into);
      if (const auto* region = std::get_if<Region>(&attr); region && *region) collect_symbols(**region, into);
    }
  }
}

/// Writes one graph and, deeper, the regions in it.
class Printer {
 public:
  Printer(const Graph& graph, const KeepArray& keep, int depth)
      : graph_(graph), keep_(keep), indent_(static_cast<std::size_t>(depth) * 2, ' ') {}

  /// name(symbols) { ... }
  std::string print(const std::map<std::string, std::int64_t>& symbols) {
    out_ += name_text(graph_.name());
    std::string list;
    for (const auto& [name, bound] : symbols) list += fmt::format("{}{}<={}", list.empty() ? "" : ", ", name, bound);
    if (!list.empty()) out_ += "(" + list + ")";
    out_ += " {\n";
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) node(id);
    for (const auto& [name, value] : graph_.outputs())
      out_ += fmt::format("{}  output {} = {}\n", indent_, name_text(name), reference(value.id()));
    return std::move(out_) + indent_ + "}";
  }

 private:
  void node(std::int32_t id) {
    const Node& node = graph_.node(id);
    out_ += fmt::format("{}  %{}: ", indent_, id);
    for (std::size_t i = 0; i < node.results.size(); ++i) out_ += (i ? ", " : "") + node.results[i].to_string();
    out_ += fmt::format(" = {}", node.op->name);
    if (!node.operands.empty()) {
      std::string list;
      for (ValueId operand : node.operands) list += (list.empty() ? "" : ", ") + reference(operand);
      out_ += "(" + list + ")";
    }
    attributes(node);
    if (graph_.data().origin(id).backward) out_ += " backward";
    out_ += '\n';
  }

  void attributes(const Node& node) {
    std::string list;
    for (std::size_t i = 0; i < node.attrs.size(); ++i) {
      const Field& field = node.op->fields[i];
      const bool in_type = is_input(node) && (field.name == "dtype" || field.name == "shape");
      if (in_type || equal(node.attrs[i], field.initial)) continue;
      list += fmt::format("{}{}={}", list.empty() ? "" : ", ", field.name, attribute(field, node.attrs[i]));
    }
    if (!list.empty()) out_ += " {" + list + "}";
  }

  std::string attribute(const Field& field, const Attr& attr) const {
    if (const auto* number = std::get_if<double>(&attr)) return number_text(*number);
    if (const auto* text = std::get_if<std::string>(&attr)) return field.words.empty() ? quoted(*text) : name_text(*text);
    if (const auto* value = std::get_if<Array>(&attr)) return array(*value);
    if (const auto* region = std::get_if<Region>(&attr)) {
      if (!*region) return "none";
      return "graph " + Printer(**region, keep_, static_cast<int>(indent_.size() / 2) + 1).print({});
    }
    return to_string(attr);
  }

  std::string array(const Array& value) const {
    const std::string type = to_string(Attr(value));
    if (keep_)
      if (auto name = keep_(value)) return fmt::format("{} array {}", type, quoted(*name));
    const bool spelled_out = value.size() <= most_spelled_out && bytes_follow_from_elements(value);
    return fmt::format("{} {}", type, spelled_out ? elements_text(value) : bytes_text(value));
  }

  std::string reference(ValueId id) const {
    return graph_.node(id.node).results.size() == 1 ? fmt::format("%{}", id.node) : fmt::format("%{}.{}", id.node, id.result);
  }

  const Graph& graph_;
  const KeepArray& keep_;
  std::string indent_;
  std::string out_;
};

}  // namespace

std::string to_text(const Graph& graph, const KeepArray& keep) {
  std::map<std::string, std::int64_t> symbols;
  collect_symbols(graph, symbols);
  return "graph " + Printer(graph, keep, 0).print(symbols) + "\n";
}

std::string to_text(const Graph& graph) { return to_text(graph, KeepArray()); }

}  // namespace rlx
