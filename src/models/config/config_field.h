#pragma once
#include <cstdint>
#include <string_view>

#include "formats/json/json_field.h"

namespace rlx {

/// A finite number in [low, high]; throws Error naming the field.
double as_number(const JsonField& field, double low, double high);
/// A size of a model: an integer from 1 to 2^31 - 1, so that products of two of them fit 64 bits.
std::int64_t as_size(const JsonField& field);

// Fields of a config that may be absent or null. All throw Error naming file and field for a value that is not allowed.

/// A size: 1 to 2^31 - 1.
std::int64_t size_or(const JsonField& config, std::string_view name, std::int64_t otherwise);
/// A size, where 0 stands for "none".
std::int64_t count_or(const JsonField& config, std::string_view name, std::int64_t otherwise);
double number_or(const JsonField& config, std::string_view name, double otherwise);
/// A number that is not below 0, as the epsilon of a norm, of which a root is taken.
double non_negative_or(const JsonField& config, std::string_view name, double otherwise);
bool flag_or(const JsonField& config, std::string_view name, bool otherwise);

}  // namespace rlx
