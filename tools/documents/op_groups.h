#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace rlx::command {

struct OpGroup {
  std::vector<const OpDef*> ops;
  std::vector<std::string_view> functions;  // of rlx/ops.h that have no op of their name
};

/// Every op and function, each in one group, by the name of the group in words: "linear algebra".
std::map<std::string, OpGroup> op_groups();

}  // namespace rlx::command
