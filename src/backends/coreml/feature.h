#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "backends/consumer.h"
#include "backends/coreml/tensors.h"

namespace rlx::coreml {

/// What users pass and get: CoreML's arrays have an axis at least, and elements of f32, f16 or i32.
struct Feature {
  std::string name, description;
  Element element;
  Dims shape;

  explicit Feature(std::string of, const Tensor& value, const Type& type)
      : name(std::move(of)),
        description(type.to_string()),
        element(value.element == Element::boolean ? Element::i32 : value.element),
        shape(value.shape.empty() ? Dims{1} : value.shape) {}

  bool is_open() const { return !std::ranges::all_of(shape, &Dim::is_static); }
  /// Of an input. `choices`: what open sizes may be together; none: all within their bounds.
  ProtobufWriter message(const std::vector<Bindings>& choices) const {
    return described(ProtobufWriter().message(array_type, is_open() ? open_array(choices) : array()));
  }
  /// Open sizes of an output follow from the inputs.
  ProtobufWriter output_message() const { return described(ProtobufWriter().message(array_type, is_open() ? elements() : array())); }
  ProtobufWriter state_message() const {
    constexpr std::uint32_t state_type = 8, wrapped_array = 1;
    return described(ProtobufWriter().message(state_type, ProtobufWriter().message(wrapped_array, array())));
  }
  Tensor tensor() const { return {name, element, shape}; }

 private:
  static constexpr std::uint32_t array_type = 5;

  ProtobufWriter elements() const { return std::move(ProtobufWriter().integer(2, form_of(element).feature)); }
  ProtobufWriter array() const {
    ProtobufWriter result = std::move(ProtobufWriter().packed(1, sizes_of(shape, {})));
    result.append(elements());
    return result;
  }
  /// The shape that is usual is the first of the choices, or the smallest.
  ProtobufWriter open_array(const std::vector<Bindings>& choices) const {
    constexpr std::uint32_t shapes = 21, ranges = 31;
    ProtobufWriter all, result;
    for (const Bindings& choice : choices) all.message(1, ProtobufWriter().packed(1, sizes_of(shape, choice)));
    Sizes usual;
    for (const Dim& dim : shape) {
      const std::int64_t least = choices.empty() ? std::max<std::int64_t>(1, dim.lower()) : dim.evaluate(choices[0]);
      usual.push_back(least);
      if (choices.empty())
        all.message(1, ProtobufWriter().integer(1, static_cast<std::uint64_t>(least)).integer(2, static_cast<std::uint64_t>(dim.upper())));
    }
    result.packed(1, usual).append(elements());
    return std::move(result.message(choices.empty() ? ranges : shapes, all));
  }
  ProtobufWriter described(const ProtobufWriter& type) const {
    return std::move(ProtobufWriter().text(1, name).text(2, description).message(3, type));
  }
};

}  // namespace rlx::coreml
