#include "backends/coreml/tensors.h"

#include <array>
#include <bit>

#include "base/half.h"
#include "rlx/error.h"

namespace rlx::coreml {
namespace {

// Fields of MIL.proto.
constexpr std::uint32_t tensor_type = 1, data_type = 1, rank_field = 2, dimensions = 3, constant_dimension = 1, unknown_dimension = 2;
constexpr std::uint32_t size_field = 1, variadic_field = 1;
constexpr std::uint32_t type_field = 2, immediate_field = 3, blob_field = 5, tensor_field = 1;
constexpr std::uint32_t floats = 1, ints = 2, bools = 3, strings = 4, bytes = 7, values_field = 1;

ProtobufWriter list_of_ints(const Sizes& values) {
  return std::move(ProtobufWriter().message(ints, ProtobufWriter().packed(values_field, values)));
}

ProtobufWriter number(Element element, double value) {
  ProtobufWriter result;
  if (element == Element::i32) return list_of_ints({static_cast<std::int64_t>(value)});
  if (element == Element::boolean) {
    const Sizes one{value != 0};
    return std::move(result.message(bools, ProtobufWriter().packed(values_field, one)));
  }
  if (element == Element::f16) {
    const auto half = std::bit_cast<std::array<char, 2>>(f16_bits(static_cast<float>(value)));
    return std::move(result.message(bytes, ProtobufWriter().text(values_field, {half.data(), half.size()})));
  }
  const auto single = std::bit_cast<std::array<char, 4>>(static_cast<float>(value));
  return std::move(result.message(floats, ProtobufWriter().text(values_field, {single.data(), single.size()})));
}

}  // namespace

std::optional<Element> element_of(DType dtype) {
  if (is_bool(dtype)) return Element::boolean;
  if (dtype == f32 || dtype == bf16) return Element::f32;
  if (dtype == f16) return Element::f16;
  if (is_integer(dtype) && info(dtype).bits <= 32) return Element::i32;
  return std::nullopt;
}

ProtobufWriter value_type(Element element, const Dims& shape) {
  ProtobufWriter type;
  type.integer(data_type, static_cast<std::uint64_t>(element)).integer(rank_field, shape.size());
  for (const Dim& size : shape) {
    ProtobufWriter dimension;
    if (size.is_static())
      dimension.message(constant_dimension, ProtobufWriter().integer(size_field, static_cast<std::uint64_t>(size.value())));
    else dimension.message(unknown_dimension, ProtobufWriter().integer(variadic_field, 0));
    type.message(dimensions, dimension);
  }
  return std::move(ProtobufWriter().message(tensor_type, type));
}

ProtobufWriter named_type(const Tensor& tensor) {
  return std::move(ProtobufWriter().text(1, tensor.name).message(2, value_type(tensor.element, tensor.shape)));
}

ProtobufWriter named_state(const Tensor& tensor) {
  constexpr std::uint32_t state_type = 5, wrapped = 1;
  ProtobufWriter type, result;
  type.message(state_type, ProtobufWriter().message(wrapped, value_type(tensor.element, tensor.shape)));
  return std::move(result.text(1, tensor.name).message(2, type));
}

ProtobufWriter immediate_value(Element element, const Sizes& shape, const ProtobufWriter& elements) {
  ProtobufWriter result;
  result.message(type_field, value_type(element, dims_of(shape)))
      .message(immediate_field, ProtobufWriter().message(tensor_field, elements));
  return result;
}

ProtobufWriter stored_value(Element element, const Sizes& shape, std::uint64_t offset) {
  ProtobufWriter result, place;
  place.text(1, "@model_path/weights/weight.bin").integer(2, offset);
  result.message(type_field, value_type(element, dims_of(shape))).message(blob_field, place);
  return result;
}

Immediate::Immediate(bool x) : value(immediate_value(Element::boolean, {}, number(Element::boolean, x ? 1 : 0))) {}
Immediate::Immediate(int x) : value(immediate_value(Element::i32, {}, number(Element::i32, x))) {}
Immediate::Immediate(const Sizes& x) : value(immediate_value(Element::i32, {static_cast<std::int64_t>(x.size())}, list_of_ints(x))) {}
Immediate::Immediate(const char* word)
    : value(immediate_value(Element::string, {}, ProtobufWriter().message(strings, ProtobufWriter().text(values_field, word)))) {}
Immediate::Immediate(std::vector<bool> x) {
  const Sizes all(x.begin(), x.end());
  value = immediate_value(Element::boolean, {static_cast<std::int64_t>(x.size())},
                          ProtobufWriter().message(bools, ProtobufWriter().packed(values_field, all)));
}
Immediate::Immediate(Element element, double x) : value(immediate_value(element, {}, number(element, x))) {}

Array carried(const Array& array) {
  const DType dtype = array.dtype();
  if (dtype == bf16) return Array::of(f32, array.shape(), array.floats());
  if (!is_integer(dtype) || dtype == i32) return array;
  Array wide(i32, array.shape());
  for (std::int64_t i = 0; i < array.size(); ++i) wide.set_int(i, static_cast<std::int32_t>(array.get_int(i)));
  return wide;
}

}  // namespace rlx::coreml
