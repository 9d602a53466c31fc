#include "backends/coreml/body.h"

#include <cctype>
#include <functional>
#include <numeric>

#include "rlx/error.h"

namespace rlx::coreml {
namespace {

// Fields of MIL.proto's Operation and Block.
constexpr std::uint32_t type_field = 1, inputs_field = 2, outputs_field = 3, blocks_field = 4, attributes_field = 5;
constexpr std::uint32_t binding = 1, by_name = 1, by_value = 2;

ProtobufWriter argument(const Argument& given) {
  ProtobufWriter result;
  const auto name = [&](const Tensor& tensor) { result.message(binding, ProtobufWriter().text(by_name, tensor.name)); };
  if (const auto* tensor = std::get_if<Tensor>(&given)) name(*tensor);
  else if (const auto* tensors = std::get_if<Tensors>(&given))
    for (const Tensor& one : *tensors) name(one);
  else result.message(binding, ProtobufWriter().message(by_value, std::get<Immediate>(given).value));
  return result;
}

}  // namespace

std::string ProgramParts::name(std::string_view wanted) {
  std::string base;
  for (const char c : wanted) base += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) base.insert(0, "_");
  std::string name = base;
  for (int i = 1; !taken_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  return name;
}

void ProgramParts::needs(Target least, std::string_view what) {
  if (target >= least) return;
  if (target_is_given) fail("coreml: {} ask for iOS {} (the target is iOS {})", what, static_cast<int>(least), static_cast<int>(target));
  target = least;
}

std::shared_ptr<StoredWeight> ProgramParts::report(const Array& array, Element element, const StoredWeight& first) {
  auto& report = stored_weights[key_of(array, "report", element)];
  if (!report) report = std::make_shared<StoredWeight>(first);
  return report;
}

Tensors Body::add_all(std::string_view type, const Arguments& arguments, Tensors results, const std::vector<ProtobufWriter>& blocks) {
  ProtobufWriter operation;
  operation.text(type_field, type);
  for (const auto& [name, value] : arguments)
    if (name != "validate_indices" || parts_.target > Target::ios16) operation.entry(inputs_field, name, argument(value));
  for (Tensor& result : results) {
    if (result.name.empty()) result.name = parts_.name(type);
    operation.message(outputs_field, named_type(result));
  }
  for (const ProtobufWriter& block : blocks) operation.message(blocks_field, block);
  const std::string name = results.empty() ? parts_.name(type) : results[0].name;
  operation.entry(attributes_field, "name", Immediate(name.c_str()).value);
  operations_.message(3, operation);
  return results;
}

Tensor Body::add(std::string_view type, const Arguments& arguments, Element element, Dims shape) {
  return add_all(type, arguments, {{{}, element, std::move(shape)}})[0];
}

Tensor Body::named(const Tensor& value, std::string name) {
  return add_all("identity", {{"x", value}}, {{std::move(name), value.element, value.shape}})[0];
}

Tensor Body::constant(const Array& array, const std::string& name) {
  const Element element = *element_of(array.dtype());
  if (element == Element::f32 || element == Element::f16) return constant(array, element, name);
  return stored(immediate_value(element, array.shape(), elements_of(carried(array), element)), element, array.shape());
}

Tensor Body::constant(const Array& array, Element element, const std::string& name) {
  constexpr std::int64_t most_in_place = 16;
  if (array.size() <= most_in_place) {
    const Array small = Array::of(*form_of(element).dtype, array.shape(), array.floats());
    return stored(immediate_value(element, array.shape(), elements_of(small, element)), element, array.shape());
  }
  std::function<void(float, float)> watch;
  if (element == Element::f16 && array.dtype() != f16) {
    const StoredWeight kept{name, std::string(rlx::name(array.dtype())), "f16", array.size(), static_cast<double>(form_of(element).bits)};
    watch = [report = parts_.report(array, element, kept)](float given, float stored) { report->add(given, stored); };
  }
  return stored(in_file(key_of(array, "", element), element, array.shape(), floats_of(array, element, name, watch)), element,
                array.shape());
}

Tensor Body::codes(const Array& array) {
  const auto source = [array](const Weights::Sink& sink) { sink(array.bytes()); };
  return stored(in_file(key_of(array, "", Element::i8), Element::i8, array.shape(), source), Element::i8, array.shape());
}

ProtobufWriter Body::in_file(const std::string& key, Element element, const Sizes& shape, Weights::Source source) const {
  const std::int64_t count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  return stored_value(element, shape, parts_.weights.add(key, element, count, std::move(source)));
}

Tensor Body::stored(const ProtobufWriter& value, Element element, const Sizes& shape) {
  const Tensor result{parts_.name("const"), element, dims_of(shape)};
  ProtobufWriter operation;
  operation.text(type_field, "const").message(outputs_field, named_type(result));
  operation.entry(attributes_field, "name", Immediate(result.name.c_str()).value).entry(attributes_field, "val", value);
  operations_.message(3, operation);
  return result;
}

Tensor Body::constant(const Sizes& shape, const Sizes& integers) {
  Array array(i32, shape);
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_int(i, integers[static_cast<std::size_t>(i)]);
  return constant(array);
}

ProtobufWriter Body::block(const Tensors& inputs, const Tensors& outputs) const {
  ProtobufWriter result;
  for (const Tensor& input : inputs) result.message(1, named_type(input));
  for (const Tensor& output : outputs) result.text(2, output.name);
  result.append(operations_);
  return result;
}

}  // namespace rlx::coreml
