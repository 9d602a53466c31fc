#pragma once
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backends/coreml/tensors.h"
#include "backends/coreml/weights.h"

namespace rlx::coreml {

/// What is one for a whole program: names that are taken, and the weights.
struct ProgramParts {
  /// A name like `wanted`, of letters, digits and _, that nothing else has.
  std::string name(std::string_view wanted);

  Weights weights;

 private:
  std::set<std::string, std::less<>> taken_;
};

/// What an operation reads: values by name (several where it takes a list), or one that stands there.
using Argument = std::variant<Tensor, Tensors, Immediate>;
using Arguments = std::vector<std::pair<std::string_view, Argument>>;

/// Operations in the order in which they run: a function, or a block inside an operation.
class Body {
 public:
  explicit Body(ProgramParts& parts) : parts_(parts) {}
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  virtual ~Body() = default;

  ProgramParts& parts() const { return parts_; }
  /// An operation of MIL with one result.
  Tensor add(std::string_view type, const Arguments& arguments, Element element, Sizes shape);
  /// One with several results, or with blocks.
  Tensors add_all(std::string_view type, const Arguments& arguments, Tensors results, const std::vector<ProtobufWriter>& blocks = {});
  /// The value under a name of `ProgramParts::name`.
  Tensor named(const Tensor& value, std::string name);
  /// Elements as `carried` gives them; large ones of floats lie in the file of weights.
  Tensor constant(const Array& array);
  Tensor constant(const Sizes& shape, const Sizes& integers);

  /// The block with these inputs and outputs.
  ProtobufWriter block(const Tensors& inputs, const Tensors& outputs) const;

 private:
  ProgramParts& parts_;
  ProtobufWriter operations_;
};

}  // namespace rlx::coreml
