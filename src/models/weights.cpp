// Matching the tensors of a checkpoint with the parameters of a graph.
#include <algorithm>

#include "base/names.h"
#include "models/flow.h"

namespace rlx {
namespace {

/// True for `part` itself and for every name below it.
bool is_below(std::string_view name, std::string_view part) {
  return name.starts_with(part) && (name.size() == part.size() || name[part.size()] == '.');
}

/// The file's names as the graph spells them, each with the name in the file. Unused ones are left out.
std::map<std::string, std::string> spelled_as_params(const Checkpoint& checkpoint, const WeightNames& names) {
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

Array converted(const Array& from, DType dtype) {
  Array result(dtype, from.shape());
  for (std::int64_t i = 0; i < from.size(); ++i) result.set_double(i, from.get_double(i));
  return result;
}

/// The tensor `name` of the file as a value for `input`.
Array fitting(const Checkpoint& checkpoint, const std::string& name, const Input& input) {
  const TensorView& tensor = checkpoint.at(name);
  Dims shape(tensor.shape.begin(), tensor.shape.end());
  if (shape != input.type.shape || !is_float(tensor.dtype)) {
    fail("tensor {} is {} in the checkpoint, but the model's config asks for {}", quote_name(name), type_text(tensor.dtype, tensor.shape),
         input.type.to_string());
  }
  Array array = checkpoint.array(name);
  return array.dtype() == input.type.dtype ? array : converted(array, input.type.dtype);
}

}  // namespace

NamedArrays load_weights(const Graph& graph, const Checkpoint& checkpoint, const WeightNames& names) {
  std::map<std::string, std::string> found = spelled_as_params(checkpoint, names);
  NamedArrays weights;
  std::vector<std::string> missing, extra;
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind != InputKind::param) continue;
    if (auto at = found.find(input.name); at != found.end()) {
      weights.emplace(input.name, fitting(checkpoint, at->second, input));
      found.erase(at);
    } else {
      missing.push_back(input.name);
    }
  }
  for (const auto& [spelled, name] : found) {
    if (std::none_of(names.unused.begin(), names.unused.end(), [&](std::string_view part) { return is_below(spelled, part); })) {
      extra.push_back(name);
    }
  }
  const auto unknown = extra.empty() ? "" : fmt::format("; the model has no use for {}", some_names(extra));
  if (!missing.empty()) fail("the checkpoint lacks {}{}", some_names(missing), unknown);
  if (!extra.empty()) fail("the checkpoint has tensors that this model has no use for: {}", some_names(extra));
  return weights;
}

}  // namespace rlx
