#pragma once
#include <string>

#include "text/tokenizer/files/gguf_tokens.h"

namespace rlx {

/// The vocabulary of a GGUF file as the bytes of tokenizer.model, for a unigram model or byte-pair encoding.
std::string sentencepiece_model(const GgufTokens& tokens, bool unigram);

}  // namespace rlx
