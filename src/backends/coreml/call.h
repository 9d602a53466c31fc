#pragma once
#include <functional>
#include <span>
#include <string_view>

#include "backends/consumer.h"
#include "backends/coreml/body.h"
#include "ir/op.h"

namespace rlx::coreml {

/// Makes operations of a region of an op, behind those of a block; `operands` are its inputs.
using EmitRegion = std::function<Tensors(Body& block, const Graph& region, const Tensors& operands)>;

/// A node for which a row makes operations. Attributes are found by name.
struct Call {
  Body& out;
  const Graph& graph;
  const Node& node;
  const Tensors& x;
  const Bindings& bindings;  // sizes of symbols
  const EmitRegion& emit_region;

  template <class T>
  const T& attr(std::string_view name) const {
    return std::get<T>(attribute(name));
  }
  bool flag(std::string_view name) const { return attr<bool>(name); }
  std::string_view word(std::string_view name) const { return attr<std::string>(name); }
  std::int64_t number(std::string_view name) const { return attr<std::int64_t>(name); }
  /// An axis of operand 0, from 0 on.
  std::int64_t axis() const;
  /// A list of numbers or of sizes.
  Sizes ints(std::string_view name) const;
  DType type(std::size_t operand) const { return graph.type(node.operands[operand]).dtype; }
  DType result_type(std::size_t result = 0) const { return node.results[result].dtype; }
  Sizes shape(std::size_t result = 0) const;
  /// An empty place for a result.
  Tensor result(std::size_t result = 0) const { return {{}, *element_of(result_type(result)), shape(result)}; }

 private:
  const Attr& attribute(std::string_view name) const;
};

using Rule = Tensors (*)(const Call&);
using Rows = std::span<const Row<Rule>>;

// The table, by subject.
Rows scalar_rows();
Rows structure_rows();
Rows addressing_rows();
Rows reduction_rows();
Rows contraction_rows();
Rows control_rows();
Rows composite_rows();
Rows missing_rows();

/// All of them.
const RowTable<Rule>& table();

Sizes sizes_of(const Dims& shape, const Bindings& bindings);

}  // namespace rlx::coreml
