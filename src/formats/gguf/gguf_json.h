#pragma once
#include <string>

#include "formats/gguf/gguf_value.h"
#include "formats/json/json.h"

namespace rlx {

/// The value as JSON: integers exactly, floats as the shortest decimals that give them; but NaN and infinities, which JSON lacks, turn into
/// null when it is written. Strings may be no UTF-8: `json_text` writes them.
json::Value to_json(const GgufValue& value);

/// On one line; what is not UTF-8 counts as U+FFFD.
std::string json_text(const json::Value& value);

}  // namespace rlx
