#pragma once
#include "formats/json/json_field.h"
#include "text/tokenizer/tokenizer.h"

namespace rlx {

/// Whether a JSON document looks like a `tekken.json`.
bool is_tekken(const JsonField& file);

/// Reads Mistral's `tekken.json`: `config` with `pattern`, `default_vocab_size` and `default_num_special_tokens`; `vocab`, byte strings in
/// base64 by rank, of which as many are used as fit beside the special tokens, whose ids come first; and `special_tokens` (or those of the
/// first files, which list none). Texts get <s> in front. Throws Error naming the field.
Tokenizer read_tekken(const JsonField& file);

}  // namespace rlx
