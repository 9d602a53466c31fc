#include "models/weights/quantized/scheme.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/names.h"

namespace rlx::quantized {

const TensorView* QuantizedModule::find(std::string_view ending) const {
  const TensorView* const tensor = checkpoint_->find(fmt::format("{}.{}", name_, ending));
  if (tensor != nullptr && std::ranges::count(tensor->shape, 0) > 0) refuse(*tensor, "sizes of at least 1");
  return tensor;
}

const TensorView& QuantizedModule::at(std::string_view ending) const {
  if (const TensorView* const tensor = find(ending)) return *tensor;
  fail("{}: the tensor {} is missing, which belongs to the quantized matrix {}", checkpoint_->name(),
       quote_name(fmt::format("{}.{}", name_, ending)), quote_name(matrix_name()));
}

const TensorView& QuantizedModule::matrix(std::string_view ending, DType dtype) const {
  const TensorView& tensor = at(ending);
  if (tensor.dtype != dtype || tensor.shape.size() != 2) refuse(tensor, fmt::format("{} with two axes", rlx::name(dtype)));
  return tensor;
}

const TensorView& QuantizedModule::at(std::string_view ending, DType dtype, std::vector<std::int64_t> shape) const {
  const TensorView& tensor = at(ending);
  if (tensor.dtype != dtype || tensor.shape != shape) refuse(tensor, type_text(dtype, shape));
  return tensor;
}

void QuantizedModule::refuse(const TensorView& tensor, const std::string& needed) const {
  fail("{}: tensor {} is {} (needed: {})", checkpoint_->name(), quote_name(tensor.name), type_text(tensor.dtype, tensor.shape), needed);
}

std::vector<std::int32_t> groups_in_order(std::int64_t columns, std::int64_t size) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(columns));
  for (std::int64_t column = 0; column < columns; ++column)
    result[static_cast<std::size_t>(column)] = static_cast<std::int32_t>(column / size);
  return result;
}

std::vector<std::int32_t> groups_of(const TensorView& g_idx, std::int64_t groups) {
  std::vector<std::int32_t> result(g_idx.data.size() / sizeof(std::int32_t));
  std::memcpy(result.data(), g_idx.data.data(), g_idx.data.size());
  for (std::int32_t group : result)
    if (group < 0 || group >= groups) fail("tensor {}: group {} (allowed: 0..{})", quote_name(g_idx.name), group, groups - 1);
  return result;
}

std::int64_t group_size(const std::optional<JsonField>& field, std::int64_t columns) {
  if (!field || field->value() == -1) return columns;
  return static_cast<std::int64_t>(field->as_integer(1, std::numeric_limits<std::int32_t>::max()));
}

std::pair<std::int64_t, std::int64_t> block_sizes(const JsonField& field) {
  const std::vector<JsonField> sizes = field.items();
  if (sizes.size() != 2) field.refuse("{} sizes (allowed: 2, of rows and columns)", sizes.size());
  const auto size = [](const JsonField& each) {
    return static_cast<std::int64_t>(each.as_integer(1, std::numeric_limits<std::int32_t>::max()));
  };
  return {size(sizes[0]), size(sizes[1])};
}

}  // namespace rlx::quantized
