#include "runtime/feeds.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/names.h"
#include "ir/array_type.h"

namespace rlx {
namespace {

/// The shape of so many values of a type with at most one axis whose size is a symbol alone. Throws Error where it is not clear.
std::vector<std::int64_t> shape_of_values(std::string_view what, std::string_view name, const Type& type, std::int64_t count) {
  std::vector<std::int64_t> shape;
  std::optional<std::size_t> open;
  std::int64_t known = 1;
  for (const Dim& dim : type.shape) {
    if (!dim.is_static() && open)
      fail("{} '{}': the shape of {} values of {} is not clear (give an Array: Array::of(shape, values))", what, name, count,
           type.to_string());
    if (!dim.is_static()) open = shape.size();
    shape.push_back(dim.is_static() ? dim.value() : 1);
    known *= shape.back();
  }
  if (open && known > 0 && count % known == 0) shape[*open] = count / known;
  else if (open) fail("{} '{}': {} values for {}", what, name, count, type.to_string());
  else if (known != count) fail("{} '{}': {} values for {} ({} elements)", what, name, count, type.to_string(), known);
  return shape;
}

std::string_view with_article(InputKind kind) {
  return kind == InputKind::param ? "a parameter" : kind == InputKind::state ? "a state" : "an input";
}

/// Whether some sizes of the symbols give the type this shape, each axis by itself.
bool may_fit(const Type& type, const std::vector<std::int64_t>& shape) {
  if (static_cast<int>(shape.size()) != type.rank()) return false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] < type.shape[axis].lower() || shape[axis] > type.shape[axis].upper()) return false;
  return true;
}

}  // namespace

std::string_view input_word(InputKind kind) {
  return kind == InputKind::param ? "parameter" : kind == InputKind::state ? "state" : "input";
}

std::size_t find_input(const Executable::State& state, std::string_view name, InputKind kind) {
  const auto& inputs = state.source.inputs();
  const std::size_t i = state.input_index(name);
  if (i < inputs.size() && inputs[i].first.kind == kind) return i;
  std::vector<std::string_view> names;
  for (const auto& [input, value] : inputs)
    if (input.kind == kind) names.push_back(input.name);
  if (i < inputs.size())
    fail("graph '{}': '{}' is {}, not {}", state.source.name(), name, with_article(inputs[i].first.kind), with_article(kind));
  fail("graph '{}': {} '{}' is unknown{}", state.source.name(), input_word(kind), name, near_hint(name, names));
}

Array checked_feed(const Storage& storage, std::string_view what, std::string_view name, const Type& type, const Feed& feed) {
  Array array = storage.admit(feed.array(), what, name);
  if (array.rank() == 0 && array.size() == 0) fail("{} '{}': the array has no value: it was never made", what, name);
  if (array.dtype() != type.dtype)
    fail("{} '{}': elements are {}, must be {}", what, name, rlx::name(array.dtype()), rlx::name(type.dtype));
  if (feed.flat()) array = Array(array.dtype(), shape_of_values(what, name, type, array.size()), array.bytes(), array.owner());
  const auto alignment = static_cast<std::uintptr_t>(std::max(1, info(type.dtype).bits / 8));
  if (reinterpret_cast<std::uintptr_t>(address(array)) % std::min<std::uintptr_t>(alignment, 8) != 0) {
    Array aligned(array.dtype(), array.shape());
    std::memcpy(aligned.mutable_bytes().data(), array.bytes().data(), array.bytes().size());
    return aligned;
  }
  return array;
}

Array kept_feed(const Storage& storage, const Input& input, const Feed& feed) {
  Array array = checked_feed(storage, input_word(input.kind), input.name, input.type, feed);
  if (!may_fit(input.type, array.shape()))
    fail("{} '{}': shape {} does not fit {}", input_word(input.kind), input.name, to_string(type_of(array).shape), input.type.to_string());
  if (array.owner()) return array;
  Array copy(array.dtype(), array.shape());
  std::copy(array.bytes().begin(), array.bytes().end(), copy.mutable_bytes().begin());
  return copy;
}

}  // namespace rlx
