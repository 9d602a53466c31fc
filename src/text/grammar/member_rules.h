#pragma once
#include <optional>
#include <string>
#include <vector>

#include "text/grammar/number_rules.h"

namespace rlx::grammar {

/// A member that an object may have, or must.
struct Member {
  std::string name;   // as JSON writes it, with quotes
  std::string value;  // GBNF
  bool required = false;
};

/// GBNF for what stands between the braces of an object with members in this order, and behind them any number of `others`, where there are
/// any. Names that may come next share what they begin with, so that few readings of a text are open at a time, however many members there
/// are.
std::string member_rules(const std::vector<Member>& members, const std::optional<std::string>& others, const AddRule& add_rule);

}  // namespace rlx::grammar
