#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "rlx/registry.h"

/// The functions of rlx/ops.h as text.
namespace rlx::command {

/// Declarations that share one comment.
struct BuilderText {
  std::string declarations;  // one a line
  std::string_view comment;
};

/// The overloads of one name; none when it is unknown.
std::vector<BuilderText> builder_texts(std::string_view name);
/// Names of the builders that make an op whose own name none has.
std::vector<std::string_view> builders_making(std::string_view op);

}  // namespace rlx::command
