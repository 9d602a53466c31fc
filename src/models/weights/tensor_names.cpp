#include "models/weights/tensor_names.h"

#include <algorithm>
#include <cstring>

#include "base/names.h"
#include "models/weights/quantized/folder_weights.h"

namespace rlx {
namespace {

std::int64_t rows_of_param(const Graph& graph, std::string_view name) {
  for (const auto& [input, value] : graph.inputs())
    if (input.name == name) return first_size(input);
  fail_internal("weights: a table names the parameter {}, which the graph lacks", name);
}

}  // namespace

std::int64_t first_size(const Input& param) { return param.type.shape.empty() ? 1 : param.type.dim(0).value(); }

RowRange range_of(const Graph& graph, std::string_view param, std::int64_t rows, const TensorPlace& place) {
  RowRange range{0, rows, place.siblings.empty() ? rows : 0, place.groups};
  bool before = true;
  for (const std::string& sibling : place.siblings) {
    if (sibling == param) before = false;
    const std::int64_t its = rows_of_param(graph, sibling);
    if (before) range.first += its;
    range.of += its;
  }
  return range;
}

Array rows_of(const Array& tensor, const RowRange& range) {
  if (range.count == range.of) return tensor;
  std::vector<std::int64_t> shape = tensor.shape();
  shape[0] = range.count;
  const std::size_t row = tensor.bytes().size() / static_cast<std::size_t>(range.of);
  const auto bytes = [&](std::int64_t rows) { return static_cast<std::size_t>(rows) * row; };
  if (range.groups == 1) return {tensor.dtype(), shape, tensor.bytes().subspan(bytes(range.first), bytes(range.count)), tensor.owner()};
  Array result(tensor.dtype(), shape);
  const std::int64_t first = range.first / range.groups, count = range.count / range.groups, of = range.of / range.groups;
  for (std::int64_t group = 0; group < range.groups; ++group)
    std::memcpy(result.mutable_bytes().data() + bytes(group * count), tensor.bytes().data() + bytes(group * of + first), bytes(count));
  return result;
}

Array transposed_matrix(const Array& from) {
  const std::int64_t rows = from.shape()[0], columns = from.shape()[1];
  Array result(from.dtype(), {columns, rows});
  const std::size_t size = from.size() > 0 ? from.bytes().size() / static_cast<std::size_t>(from.size()) : 0;
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t row = 0; row < rows; ++row)
      std::memcpy(result.mutable_bytes().data() + static_cast<std::size_t>(column * rows + row) * size,
                  from.bytes().data() + static_cast<std::size_t>(row * columns + column) * size, size);
  return result;
}

std::map<std::string, std::string> spelled_names(std::span<const std::string_view> in_file, const WeightNames& names) {
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
    if (!added) fail("two tensors stand for {}, as {} and {}", quote_name(spelled), quote_name(at->second), quote_name(name));
  }
  return result;
}

void check_tensors(const Checkpoint& checkpoint, const std::map<std::string, std::string>& spelled, const std::set<std::string>& wanted,
                   const WeightNames& names) {
  std::vector<std::string> missing, extra;
  for (const std::string& name : wanted)
    if (!spelled.contains(name)) missing.push_back(name);
  for (const auto& [name, in_file] : spelled)
    if (!wanted.contains(name) && !is_unused(name, names) && !is_idle_bias(checkpoint, in_file)) extra.push_back(in_file);
  const auto unknown = extra.empty() ? "" : fmt::format("; the model has no use for {}", some_names(extra));
  const std::string& file = checkpoint.files().size() == 1 ? checkpoint.files().front().name : checkpoint.name();
  if (!missing.empty()) fail("{}: the checkpoint lacks {}{}", file, some_names(missing), unknown);
  if (!extra.empty()) fail("{}: the checkpoint has tensors that this model has no use for: {}", file, some_names(extra));
}

bool same_but_for_axes(std::vector<std::int64_t> stored, const Dims& shape) {
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

}  // namespace rlx
