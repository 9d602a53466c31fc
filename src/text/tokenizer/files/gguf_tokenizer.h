#pragma once
#include "formats/gguf/gguf.h"
#include "text/tokenizer/tokenizer.h"

namespace rlx {

/// The tokenizer in the metadata of a GGUF file: `tokenizer.ggml.model` is gpt2 (byte-pair encoding, cut as `tokenizer.ggml.pre` says),
/// gemma4 or whitespace (the same, cut as these names of `tokenizer.ggml.pre` say), llama (sentencepiece BPE), t5 (unigram) or bert
/// (WordPiece). Throws Error naming the file, the key and what is wrong.
Tokenizer read_gguf_tokenizer(const GgufFile& file);

}  // namespace rlx
