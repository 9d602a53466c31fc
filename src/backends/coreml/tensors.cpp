#include "backends/coreml/tensors.h"

#include <algorithm>

#include "rlx/error.h"

namespace rlx::coreml {
namespace {

// Fields of MIL.proto.
constexpr std::uint32_t tensor_type = 1, data_type = 1, rank_field = 2, dimensions = 3, constant_dimension = 1, unknown_dimension = 2;
constexpr std::uint32_t size_field = 1, variadic_field = 1;
constexpr std::uint32_t type_field = 2, immediate_field = 3, blob_field = 5, tensor_field = 1;
constexpr std::uint32_t floats = 1, ints = 2, bools = 3, strings = 4, bytes = 7, values_field = 1;

constexpr ElementForm forms[] = {{Element::boolean, boolean, "bool", 0, 0, 0},
                                 {Element::f16, f16, "fp16", 65552, 1, 16},
                                 {Element::f32, f32, "fp32", 65568, 2, 32},
                                 {Element::i32, i32, "int32", 131104, 0, 0},
                                 {Element::i8, {}, "", 0, 4, 8},
                                 {Element::i4, {}, "", 0, 8, 4},
                                 {Element::u1, {}, "", 0, 9, 1},
                                 {Element::u2, {}, "", 0, 10, 2},
                                 {Element::u4, {}, "", 0, 11, 4},
                                 {Element::u3, {}, "", 0, 12, 3},
                                 {Element::u6, {}, "", 0, 13, 6}};

}  // namespace

const ElementForm& form_of(Element element) {
  const auto* const form = std::ranges::find(forms, element, &ElementForm::element);
  if (form == std::end(forms)) fail_internal("coreml: elements {}", static_cast<int>(element));
  return *form;
}

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

Immediate::Immediate(bool x) : Immediate(Element::boolean, x ? 1 : 0) {}
Immediate::Immediate(int x) : Immediate(Element::i32, x) {}
Immediate::Immediate(const Sizes& x)
    : value(immediate_value(Element::i32, {static_cast<std::int64_t>(x.size())},
                            ProtobufWriter().message(ints, ProtobufWriter().packed(values_field, x)))) {}
Immediate::Immediate(const char* word)
    : value(immediate_value(Element::string, {}, ProtobufWriter().message(strings, ProtobufWriter().text(values_field, word)))) {}
Immediate::Immediate(std::vector<bool> x) {
  const Sizes all(x.begin(), x.end());
  value = immediate_value(Element::boolean, {static_cast<std::int64_t>(x.size())},
                          ProtobufWriter().message(bools, ProtobufWriter().packed(values_field, all)));
}
Immediate::Immediate(Element element, double x) : value(immediate_value(element, {}, elements_of(array_of(element, x), element))) {}

ProtobufWriter elements_of(const Array& array, Element element) {
  const auto data = array.bytes();
  const std::string_view raw(reinterpret_cast<const char*>(data.data()), data.size());
  ProtobufWriter result;
  if (element == Element::f32 || element == Element::f16)
    return std::move(result.message(element == Element::f32 ? floats : bytes, ProtobufWriter().text(values_field, raw)));
  Sizes numbers;
  for (std::int64_t i = 0; i < array.size(); ++i) numbers.push_back(array.get_int(i));
  return std::move(result.message(element == Element::i32 ? ints : bools, ProtobufWriter().packed(values_field, numbers)));
}

Array array_of(Element element, double value) {
  Array array(*form_of(element).dtype, {});
  array.set_double(0, value);
  return array;
}

Array carried(const Array& array) {
  const DType dtype = array.dtype();
  if (dtype == bf16) return Array::of(f32, array.shape(), array.floats());
  if (!is_integer(dtype) || dtype == i32) return array;
  Array wide(i32, array.shape());
  for (std::int64_t i = 0; i < array.size(); ++i) wide.set_int(i, static_cast<std::int32_t>(array.get_int(i)));
  return wide;
}

}  // namespace rlx::coreml
