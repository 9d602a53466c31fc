#pragma once
#include <string_view>

#include "formats/json/json_field.h"

namespace rlx {

/// The name in `tokenizer.ggml.pre` of the way in which a tokenizer.json of byte-level BPE (`root`) cuts texts into words. It is found by
/// what that does to a text of many kinds, as patterns are spelled in several ways: by the words, else by the tokens that come out, also of
/// the texts of all tokens, as merges may make a cut idle. Throws Error where none of the ways with names does the same.
std::string_view splitting_name(const JsonField& root);

}  // namespace rlx
