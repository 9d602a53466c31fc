#include "backends/coreml/call.h"

namespace rlx::coreml {

const Attr& Call::attribute(std::string_view name) const {
  const auto& fields = node.op->fields;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name) return node.attrs[i];
  fail_internal("coreml: {} has no attribute {}", node.op->name, name);
}

std::int64_t Call::axis() const {
  const std::int64_t axis = number("axis");
  return axis < 0 ? axis + x[0].rank() : axis;
}

Sizes Call::ints(std::string_view name) const {
  const Attr& attr = attribute(name);
  if (const auto* list = std::get_if<Sizes>(&attr)) return *list;
  return sizes_of(std::get<Dims>(attr), bindings);
}

Sizes Call::shape(std::size_t result) const { return sizes_of(node.results[result].shape, bindings); }

Sizes sizes_of(const Dims& shape, const Bindings& bindings) {
  Sizes sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.evaluate(bindings));
  return sizes;
}

const RowTable<Rule>& table() {
  static const RowTable<Rule> all = [] {
    RowTable<Rule> table;
    for (const Rows rows : {scalar_rows(), structure_rows(), addressing_rows(), reduction_rows(), contraction_rows(), control_rows(),
                            composite_rows(), missing_rows()})
      table.add(rows);
    return table;
  }();
  return all;
}

}  // namespace rlx::coreml
