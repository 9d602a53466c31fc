#pragma once
#include "formats/gguf.h"
#include "models/tokenizer/tokenizer.h"

namespace rlx {

/// The tokenizer in the metadata of a GGUF file: `tokenizer.ggml.model` is gpt2 or gemma4 (byte-pair encoding, cut as `tokenizer.ggml.pre`
/// says), llama (sentencepiece BPE), t5 (unigram) or bert (WordPiece). Throws Error naming the file, the key and what is wrong.
Tokenizer read_gguf_tokenizer(const GgufFile& file);

}  // namespace rlx
