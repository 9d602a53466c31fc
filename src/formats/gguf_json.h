#pragma once
#include "formats/gguf_value.h"
#include "formats/json.h"

namespace rlx {

/// The value as JSON: integers exactly, floats as the shortest decimals that give them; but NaN and infinities, which JSON lacks, turn into
/// null when it is written. Strings may be no UTF-8: dump with an error handler.
json::Value to_json(const GgufValue& value);

}  // namespace rlx
