#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files/protobuf_writer.h"
#include "rlx/array.h"
#include "rlx/dim.h"

namespace rlx::coreml {

using Sizes = std::vector<std::int64_t>;

/// The same as sizes that a run may decide.
inline Dims dims_of(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

/// Elements of tensors, by their numbers in MIL. Those after i32 are codes of weights only.
enum class Element : std::uint8_t {
  boolean = 1,
  string = 2,
  f16 = 10,
  f32 = 11,
  i8 = 21,
  i32 = 23,
  i4 = 25,
  u4 = 35,
  u2 = 36,
  u1 = 37,
  u6 = 38,
  u3 = 39
};

/// What is said of elements where they stand: 0 and no type where they do not stand there.
struct ElementForm {
  Element element;
  std::optional<DType> dtype;  // of values, and of constants
  const char* word;            // for casts
  std::uint32_t feature;       // the number for what users pass
  std::uint32_t record;        // the number in the file of weights
  std::uint32_t bits;          // there
};
const ElementForm& form_of(Element element);

/// What carries elements of a type: integers below 32 bits are computed in 32, u32 has the bits of i32, bf16 is f32 (and not rounded
/// between ops). Nothing: CoreML has no such numbers.
std::optional<Element> element_of(DType dtype);

/// A value of a program: what an operation gave a name. Sizes that are no numbers are those that a run has.
struct Tensor {
  std::string name;
  Element element = Element::f32;
  Dims shape;

  int rank() const { return static_cast<int>(shape.size()); }
};
using Tensors = std::vector<Tensor>;

/// A value that stands where it is used: a number, a list of them, or words.
struct Immediate {
  Immediate(bool value);                // NOLINT(google-explicit-constructor)
  Immediate(int value);                 // NOLINT(google-explicit-constructor)
  Immediate(const Sizes& values);       // NOLINT(google-explicit-constructor): of i32
  Immediate(const char* word);          // NOLINT(google-explicit-constructor)
  Immediate(std::vector<bool> values);  // NOLINT(google-explicit-constructor)
  Immediate(Element element, double number);
  explicit Immediate(ProtobufWriter message) : value(std::move(message)) {}

  ProtobufWriter value;  // a message of MIL's type Value
};

/// The messages of MIL that name types: ValueType of a tensor, NamedValueType.
ProtobufWriter value_type(Element element, const Dims& shape);
ProtobufWriter named_type(const Tensor& tensor);
/// The same of a state with such elements.
ProtobufWriter named_state(const Tensor& tensor);
/// A Value whose elements stand in it.
ProtobufWriter immediate_value(Element element, const Sizes& shape, const ProtobufWriter& elements);
/// A Value whose elements lie in the package's file of weights, at the record with this offset.
ProtobufWriter stored_value(Element element, const Sizes& shape, std::uint64_t offset);

/// The elements as MIL's message TensorValue.
ProtobufWriter elements_of(const Array& array, Element element);

/// A number of such elements, without axes.
Array array_of(Element element, double value);
/// The elements as CoreML has them: narrow integers and bf16 widened. Their type must have an Element.
Array carried(const Array& array);

}  // namespace rlx::coreml
