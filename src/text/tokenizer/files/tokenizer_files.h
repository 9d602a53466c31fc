#pragma once
#include <map>
#include <string>

#include "formats/gguf/gguf.h"

namespace rlx {

/// The tokenizer in the metadata of a GGUF file as the files of a folder, by their names: tokenizer.json for byte-pair encoding and
/// WordPiece, tokenizer.model for sentencepiece, and tokenizer_config.json with special tokens and chat template. Nothing where the file
/// has no tokenizer. What they give is compared with the file's own tokenizer on a few texts: throws Error where it differs, and for a
/// kind that has no such form.
std::map<std::string, std::string> tokenizer_files(const GgufFile& file);

/// The same as tokenizer.json, which sentencepiece's BPE (llama) has a form in, too. Throws Error as tokenizer_files, and for a file
/// without a tokenizer.
std::string tokenizer_json(const GgufFile& file);

/// The chat templates in the metadata of a GGUF file, by name: "default" of tokenizer.chat_template, NAME of tokenizer.chat_template.NAME.
std::map<std::string, std::string> chat_templates_in(const GgufFile& file);

}  // namespace rlx
