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

/// Whether type, enum, const, limits and lengths of a schema allow a value; its other keywords may forbid it.
bool is_allowed(const json::Value& value, const json::Value& schema, const std::string& place);

bool limits_numbers(const json::Value& schema);
/// The type of the values that a grammar gives for a schema that names none; "value": any.
std::string implied_type(const json::Value& schema);

}  // namespace rlx::grammar
