#pragma once
#include <string>
#include <vector>

#include "formats/json/json.h"
#include "text/grammar/number_rules.h"

namespace rlx::grammar {

/// What minimum, maximum, exclusiveMinimum, exclusiveMaximum (a bound, or of draft 4 whether the other is one) and multipleOf say. Throws
/// Error, after `place`, for what is no limit.
NumberLimits number_limits(const json::Value& schema, bool integer, const std::string& place);

/// The values of `enum` or `const` that the other keywords allow, each once. Throws Error, after `place`, where there are none.
std::vector<json::Value> listed_values(const json::Value& schema, const std::string& place);

}  // namespace rlx::grammar
