#pragma once
#include <string>
#include <vector>

#include "item.h"

namespace rlx::python {

/// What tells calls of a builder apart but for the elements of its arrays: its name, types, numbers, words. Empty for a call that another
/// one cannot stand for: with functions, or with arrays that are traced, symbolic or not of rlx.
/// `operands`: the arrays, in order.
std::string call_key(const std::string& name, const nb::tuple& args, const nb::dict& kwargs, std::vector<Tensor>& operands);

}  // namespace rlx::python
