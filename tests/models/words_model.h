#pragma once
#include <filesystem>

#include <fmt/format.h>

#include "fixture.h"
#include "formats/temporary_folder.h"

namespace rlx::test {

/// The Llama of the fixtures with a tokenizer of 256 words, "w0" to "w255", which decode to themselves with spaces between.
inline void write_words_model(const std::filesystem::path& folder) {
  for (const char* name : {"config.json", "model.safetensors"}) std::filesystem::copy(fixture("hf/llama") / name, folder / name);
  std::string words;
  for (int i = 0; i < 256; ++i) words += fmt::format("{}\"w{}\": {}", i > 0 ? ", " : "", i, i);
  write_text(folder / "tokenizer.json",
             fmt::format(R"({{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
               "pre_tokenizer": {{"type": "Whitespace"}}, "post_processor": null, "decoder": {{"type": "WordPiece", "prefix": "##", "cleanup": false}},
               "model": {{"type": "WordPiece", "unk_token": "w0", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
               "vocab": {{{}}}}}}})",
                         words));
}

}  // namespace rlx::test
