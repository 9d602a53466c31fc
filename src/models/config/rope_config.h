#pragma once
#include <cstdint>
#include <string_view>

#include "formats/json/json_field.h"
#include "rlx/op_types.h"

namespace rlx {

/// How many elements of a head turn, where a config says which part of it does. Throws Error unless they are an even number.
std::int64_t rotary_part(const JsonField& config, std::int64_t head_size, double part);

/// The rope of a config in Hugging Face's layout, in both spellings: `rope_parameters` (perhaps with a member for each type of layer), or
/// rope_theta, rope_scaling and partial_rotary_factor. `layer_type` picks the member, where there are such.
/// Throws Error naming the field for a kind of scaling that is not supported, or numbers that make no rope.
RopeOptions read_rope(const JsonField& config, std::int64_t head_size, std::string_view layer_type = "");

/// What DeepSeek's configs multiply scores of attention by, beside 1 / sqrt(head size), where their rope is stretched by YaRN.
double yarn_score_factor(const JsonField& config);

}  // namespace rlx
