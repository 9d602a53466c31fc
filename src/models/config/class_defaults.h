#pragma once
#include <string_view>

#include "formats/json/json.h"

namespace rlx {

/// What the config class of a model type takes for fields that a config leaves out, as an object; an empty one for other types. What
/// classes derive from other fields is not among them, nor are the sizes that every config says.
const json::Value& class_defaults(std::string_view model_type);

/// The same under the fields of `config`; null in it stays null.
json::Value over_class_defaults(const json::Value& config, std::string_view model_type);

}  // namespace rlx
