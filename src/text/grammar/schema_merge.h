#pragma once
#include <string>

#include "formats/json/json.h"

namespace rlx::grammar {

/// Whether a keyword only tells people something, or holds schemas that others refer to.
bool is_annotation(std::string_view keyword);

/// What a schema demands beside `keyword`: without annotations, and without `nullable`, which widens the schema as a whole.
json::Value demands_beside(const json::Value& schema, std::string_view keyword);

/// One schema of the values that satisfy both: with the members and required names of both, and the types that both allow. Throws Error
/// "{place}: ..." where they contradict each other, and where no schema that is supported says both.
json::Value merged_schemas(const json::Value& first, const json::Value& second, const std::string& place);

}  // namespace rlx::grammar
