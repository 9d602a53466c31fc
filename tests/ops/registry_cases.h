#pragma once
#include <string>
#include <vector>

#include "ir/op.h"

namespace rlx::test {

/// One sample of a registered op.
struct Case {
  const OpDef* op;
  Sample sample;
  std::size_t number;
  std::string name() const {
    std::string text = std::string(op->name) + " sample " + std::to_string(number) + ":";
    for (const auto& operand : sample.operands) text += " " + operand.type.to_string();
    for (const Attr& attr : sample.attrs) text += " " + to_string(attr);
    return text;
  }
};

/// Every sample of every registered op.
inline std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& [name, op] : op_registry()) {
    std::size_t number = 0;
    for (const Sample& sample : op->samples()) cases.push_back({op, sample, number++});
  }
  return cases;
}

}  // namespace rlx::test
