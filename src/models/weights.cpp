// Matching the tensors of a checkpoint with the parameters of a graph.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/mapped_file.h"
#include "base/names.h"
#include "models/flow.h"
#include "quant/format.h"

namespace rlx {
namespace {

/// True for `part` itself and for every name below it.
bool is_below(std::string_view name, std::string_view part) {
  return name.starts_with(part) && (name.size() == part.size() || name[part.size()] == '.');
}

/// "layers.3.attention.q.weight" -> "attention.q.weight", with `number` "3"; nothing for other names.
std::optional<std::string_view> behind_layer(std::string_view name, std::string_view layers, std::string_view& number) {
  if (!is_below(name, layers) || name.size() <= layers.size() + 1) return std::nullopt;
  const std::string_view rest = name.substr(layers.size() + 1);
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits == rest.size() || rest[digits] != '.') return std::nullopt;
  number = rest.substr(0, digits);
  return rest.substr(digits + 1);
}

bool is_unused(std::string_view name, const WeightNames& names) {
  std::string_view number;
  const auto rest = behind_layer(name, names.layers, number);
  std::size_t layer = 0;
  if (rest && names.used_layers > 0 && std::from_chars(number.data(), number.data() + number.size(), layer).ec == std::errc() &&
      layer >= names.used_layers)
    return true;
  return std::any_of(names.unused.begin(), names.unused.end(),
                     [&](std::string_view part) { return is_below(name, part) || (rest && is_below(*rest, part)); });
}

/// The file's names as the tables spell them, each with the name in the file.
std::map<std::string, std::string> spelled_names(const Checkpoint& checkpoint, const WeightNames& names) {
  const auto in_file = checkpoint.names();
  const bool prefixed =
      !names.prefix.empty() && std::any_of(in_file.begin(), in_file.end(), [&](std::string_view n) { return n.starts_with(names.prefix); });
  std::map<std::string, std::string> result;
  for (std::string_view name : in_file) {
    std::string spelled(name);
    if (prefixed && name.starts_with(names.prefix)) spelled.erase(0, names.prefix.size());
    for (const auto& [old_end, new_end] : names.endings) {
      if (spelled.ends_with(old_end)) spelled.replace(spelled.size() - old_end.size(), old_end.size(), new_end);
    }
    const auto [at, added] = result.emplace(spelled, name);
    if (!added) fail("the checkpoint has {} twice, as {} and {}", quote_name(spelled), quote_name(at->second), quote_name(name));
  }
  return result;
}

/// Where a parameter's values lie.
struct WeightPlace {
  std::vector<std::string> tensors = {};
  bool stacked = false;                    // along a new first axis, even if it is one
  std::vector<std::string> siblings = {};  // the parameters that share the tensor's rows, in order; empty: it is alone
  std::int64_t groups = 1;
  bool transposed = false;
};

std::string replaced(std::string_view pattern, std::string_view what, std::string_view with) {
  std::string text(pattern);
  if (const std::size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), with);
  return text;
}

/// `experts`: how many a parameter of experts has.
WeightPlace place_of(std::string_view param, std::int64_t experts, const WeightNames& names) {
  std::string_view number, rest = param;
  const auto in_layer = behind_layer(param, "layers", number);
  if (in_layer) rest = *in_layer;
  const auto& table = in_layer ? names.layer : names.whole;
  for (auto line = table.rbegin(); line != table.rend(); ++line) {
    const auto own = std::find_if(line->params.begin(), line->params.end(), [&](std::string_view p) { return is_below(rest, p); });
    if (own == line->params.end()) continue;
    const std::string_view ending = rest.substr(own->size());
    const auto full = [&](std::string_view layers, std::string_view name) {
      return in_layer ? fmt::format("{}.{}.{}{}", layers, number, name, ending) : fmt::format("{}{}", name, ending);
    };
    WeightPlace place{.groups = line->groups, .transposed = line->transposed};
    if (line->params.size() > 1)
      for (std::string_view each : line->params) place.siblings.push_back(full("layers", each));
    const std::string tensor = full(names.layers, line->tensor);
    place.stacked = tensor.find("{e}") != std::string::npos;
    const std::int64_t count = place.stacked ? experts : 1;
    for (std::int64_t e = 0; e < count; ++e) place.tensors.push_back(replaced(tensor, "{e}", std::to_string(e)));
    return place;
  }
  if (in_layer) return {.tensors = {fmt::format("{}.{}.{}", names.layers, number, rest)}};
  return {.tensors = {std::string(param)}};
}

std::int64_t first_size(const Input& param) { return param.type.shape.empty() ? 1 : param.type.dim(0).value(); }

/// Some rows of each of the groups that a tensor's rows come in.
struct RowRange {
  std::int64_t first, count, of;  // in all groups together
  std::int64_t groups;
};

/// A tensor's elements in groups of `inner` bytes, (rows, columns) as (columns, rows).
Array transposed_matrix(const Array& from) {
  const std::int64_t rows = from.shape()[0], columns = from.shape()[1];
  Array result(from.dtype(), {columns, rows});
  const std::size_t size = from.bytes().size() / static_cast<std::size_t>(std::max<std::int64_t>(from.size(), 1));
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = 0; r < rows; ++r)
      std::memcpy(result.mutable_bytes().data() + static_cast<std::size_t>(c * rows + r) * size,
                  from.bytes().data() + static_cast<std::size_t>(r * columns + c) * size, size);
  return result;
}

/// The range's rows; without a copy where they lie together.
Array rows_of(const Array& from, const RowRange& range) {
  if (range.count == range.of) return from;
  std::vector<std::int64_t> shape = from.shape();
  shape[0] = range.count;
  const std::size_t row = from.bytes().size() / static_cast<std::size_t>(range.of);
  const auto bytes = [&](std::int64_t rows) { return static_cast<std::size_t>(rows) * row; };
  if (range.groups == 1) return {from.dtype(), shape, from.bytes().subspan(bytes(range.first), bytes(range.count)), from.owner()};
  Array result(from.dtype(), shape);
  const std::int64_t first = range.first / range.groups, count = range.count / range.groups, of = range.of / range.groups;
  for (std::int64_t group = 0; group < range.groups; ++group)
    std::memcpy(result.mutable_bytes().data() + bytes(group * count), from.bytes().data() + bytes(group * of + first), bytes(count));
  return result;
}

Array converted(const Array& from, DType dtype) {
  if (from.dtype() == dtype) return from;
  Array result(dtype, from.shape());
  if (from.dtype() == bf16 && dtype == f32) {  // the common case: a bf16 is the upper half of an f32
    const auto to = result.mutable_values<float>();
    for (std::size_t i = 0; i < to.size(); ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, from.bytes().data() + 2 * i, 2);
      to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
    }
    release_mapped_pages(from.bytes());
    return result;
  }
  for (std::int64_t i = 0; i < from.size(); ++i) result.set_double(i, from.get_double(i));
  release_mapped_pages(from.bytes());
  return result;
}

class WeightLoader {
 public:
  WeightLoader(const Graph& graph, const Checkpoint& checkpoint, const WeightNames& names)
      : graph_(graph), checkpoint_(checkpoint), names_(names), spelled_(spelled_names(checkpoint, names)) {}

  NamedArrays load() {
    NamedArrays weights;
    for (const auto& [input, value] : graph_.inputs()) {
      if (input.kind != InputKind::param) continue;
      const WeightPlace place = place_of(input.name, first_size(input), names_);
      if (find(place)) weights.emplace(input.name, place.stacked ? stack(input, place) : one(input, place));
    }
    refuse_differences();
    return weights;
  }

 private:
  /// Notes the tensors as used, or as missing.
  bool find(const WeightPlace& place) {
    bool all = true;
    for (const std::string& tensor : place.tensors) {
      if (spelled_.contains(tensor)) used_.push_back(tensor);
      else missing_.insert(tensor), all = false;
    }
    return all;
  }

  RowRange range_of(const Input& input, const WeightPlace& place) const {
    RowRange range{0, first_size(input), 0, place.groups};
    bool before = true;
    for (const std::string& sibling : place.siblings) {
      if (sibling == input.name) before = false;
      const std::int64_t rows = rows_of_param(sibling);
      if (before) range.first += rows;
      range.of += rows;
    }
    if (place.siblings.empty()) range.of = range.count;
    return range;
  }
  std::int64_t rows_of_param(const std::string& name) const {
    for (const auto& [input, value] : graph_.inputs())
      if (input.name == name) return input.type.dim(0).value();
    fail_internal("weights: a table names the parameter {}, which the graph lacks", name);
  }

  /// True where the shapes agree but for axes of one, or for matrices one below the other where the file stacks them.
  static bool fits(std::vector<std::int64_t> stored, const Dims& shape) {
    std::vector<std::int64_t> wanted;
    for (const Dim& size : shape)
      if (size != Dim(1)) wanted.push_back(size.value());
    std::erase(stored, 1);
    if (stored != wanted && stored.size() > 1) {
      stored[1] *= stored[0];
      stored.erase(stored.begin());
    }
    return stored == wanted;
  }

  /// A tensor that must have `rows` rows where the parameter has its own, in the parameter's element type.
  Array tensor(const std::string& spelled, const Input& input, Dims shape, bool turned) const {
    if (turned && shape.size() == 2) std::swap(shape[0], shape[1]);
    const std::string& name = spelled_.at(spelled);
    const TensorView& view = checkpoint_.at(name);
    if (input.type.dtype == u8) return blocks(view, shape);
    if (!fits(view.shape, shape) || !is_float(view.dtype)) {
      fail("tensor {} is {} in the checkpoint, but the model's config asks for {}", quote_name(name), type_text(view.dtype, view.shape),
           Type{input.type.dtype, shape}.to_string());
    }
    Array array = checkpoint_.array(name);
    std::vector<std::int64_t> sizes;
    for (const Dim& size : shape) sizes.push_back(size.value());
    if (array.shape() != sizes) array = Array(array.dtype(), sizes, array.bytes(), array.owner());
    return turned && shape.size() == 2 ? transposed_matrix(array) : array;
  }

  /// The bytes of a tensor of rows of blocks, (..., bytes).
  Array blocks(const TensorView& view, const Dims& shape) const {
    std::vector<std::int64_t> sizes;
    for (const Dim& size : shape) sizes.push_back(size.value());
    const auto bytes = checked_product(sizes);
    if (view.shape.size() != sizes.size() || !std::equal(sizes.begin(), sizes.end() - 1, view.shape.begin()) || !bytes ||
        static_cast<std::int64_t>(view.data.size()) != *bytes)
      fail("tensor {} is {} in the checkpoint, but the model's config asks for {}, the last of bytes", quote_name(view.name),
           type_text(view.dtype, view.shape), Type{u8, shape}.to_string());
    if (is_packed(view) || reinterpret_cast<std::uintptr_t>(view.data.data()) % sizeof(float) == 0)
      return {u8, sizes, view.data, checkpoint_.owner_of(view.name)};
    Array aligned(u8, sizes);
    std::memcpy(aligned.mutable_bytes().data(), view.data.data(), view.data.size());
    return aligned;
  }

  Array one(const Input& input, const WeightPlace& place) const {
    const RowRange range = range_of(input, place);
    Dims shape = input.type.shape;
    if (!shape.empty()) shape[0] = range.of;
    return converted(rows_of(tensor(place.tensors[0], input, shape, place.transposed), range), input.type.dtype);
  }

  Array stack(const Input& input, const WeightPlace& place) const {
    std::vector<std::int64_t> shape;
    for (const Dim& size : input.type.shape) shape.push_back(size.value());
    Array result(input.type.dtype, shape);
    const Dims each(input.type.shape.begin() + 1, input.type.shape.end());
    const std::size_t bytes = result.bytes().size() / place.tensors.size();
    for (std::size_t i = 0; i < place.tensors.size(); ++i) {
      const Array stored = tensor(place.tensors[i], input, each, place.transposed), part = converted(stored, input.type.dtype);
      if (input.type.dtype == u8) refuse_unlike(place.tensors[0], place.tensors[i]);
      std::memcpy(result.mutable_bytes().data() + i * bytes, part.bytes().data(), bytes);
      release_mapped_pages(stored.bytes());
    }
    return result;
  }

  /// Experts share one parameter, so they are of one type.
  void refuse_unlike(const std::string& first, const std::string& other) const {
    const TensorView &a = checkpoint_.at(spelled_.at(first)), &b = checkpoint_.at(spelled_.at(other));
    if (a.dtype != b.dtype || a.format != b.format)
      fail("tensor {} is stored otherwise than {} (allowed: experts of one type)", quote_name(b.name), quote_name(a.name));
  }

  void refuse_differences() {
    std::vector<std::string> extra;
    for (const std::string& name : used_) spelled_.erase(name);
    for (const auto& [spelled, name] : spelled_)
      if (!is_unused(spelled, names_)) extra.push_back(name);
    const auto unknown = extra.empty() ? "" : fmt::format("; the model has no use for {}", some_names(extra));
    const std::vector<std::string> missing(missing_.begin(), missing_.end());
    if (!missing.empty()) fail("the checkpoint lacks {}{}", some_names(missing), unknown);
    if (!extra.empty()) fail("the checkpoint has tensors that this model has no use for: {}", some_names(extra));
  }

  const Graph& graph_;
  const Checkpoint& checkpoint_;
  const WeightNames& names_;
  std::map<std::string, std::string> spelled_;  // as the tables spell them -> in the file
  std::vector<std::string> used_;
  std::set<std::string> missing_;
};

/// Empty: of another type than products take.
std::string_view stored_type(const TensorView& tensor) {
  if (is_packed(tensor)) return tensor.format->name;
  return tensor.dtype == f32 ? "F32" : tensor.dtype == f16 ? "F16" : tensor.dtype == bf16 ? "BF16" : "";
}

}  // namespace

WeightStorage stored_types(const Checkpoint& checkpoint, const WeightNames& names) {
  auto types = std::make_shared<std::map<std::string, std::string>>();  // by the names of the tables
  for (const auto& [spelled, name] : spelled_names(checkpoint, names)) {
    if (const TensorView& view = checkpoint.at(name); view.shape.size() == 2 || view.shape.size() == 3)
      if (std::string_view type = stored_type(view); !type.empty()) types->emplace(spelled, type);
  }
  return [types, names](const std::string& param) {
    const WeightPlace place = place_of(param, 1, names);
    const auto found = types->find(place.tensors[0]);
    const bool is_turned = place.transposed && found != types->end() && (place.stacked || find_block_format(found->second)->values > 1);
    return found == types->end() || is_turned ? std::string() : found->second;
  };
}

NamedArrays load_weights(const Graph& graph, const Checkpoint& checkpoint, const WeightNames& names) {
  return WeightLoader(graph, checkpoint, names).load();
}

}  // namespace rlx
