#pragma once
#include <string_view>

#include "ir/op.h"
#include "rlx/error.h"

namespace rlx {

/// An attribute of a node by its name.
template <class T>
const T& attribute(const Node& node, std::string_view name) {
  for (std::size_t i = 0; i < node.attrs.size(); ++i)
    if (node.op->fields[i].name == name) return std::get<T>(node.attrs[i]);
  fail_internal("claim: {} has no attribute {}", node.op->name, name);
}

}  // namespace rlx
