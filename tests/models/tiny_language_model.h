#pragma once
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/files/file_writer.h"
#include "fixture.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "formats/tensors/safetensors.h"
#include "text/unicode/byte_chars.h"

namespace rlx::test {

/// A folder with the Llama of the fixtures, which has 256 tokens, and this tokenizer.
class TinyLanguageModel {
 public:
  explicit TinyLanguageModel(const std::string& tokenizer) {
    for (const char* name : {"config.json", "model.safetensors"}) std::filesystem::copy(fixture("hf/llama") / name, folder_ / name);
    write_file(folder_ / "tokenizer.json", tokenizer);
  }
  std::filesystem::path path() const { return folder_ / ""; }

 private:
  TemporaryFolder folder_;
};

/// 256 words, "w0" to "w255", which decode to themselves with spaces between. `post_processor` is JSON.
inline std::string tokenizer_of_words(std::string_view post_processor = "null") {
  std::string words;
  for (int i = 0; i < 256; ++i) words += fmt::format("{}\"w{}\": {}", i > 0 ? ", " : "", i, i);
  return fmt::format(R"({{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {{"type": "Whitespace"}}, "post_processor": {}, "decoder": {{"type": "WordPiece", "prefix": "##", "cleanup": false}},
    "model": {{"type": "WordPiece", "unk_token": "w0", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    "vocab": {{{}}}}}}})",
                     post_processor, words);
}

/// A token for each byte, whose id is the byte.
inline std::string tokenizer_of_bytes() {
  json::Value vocabulary = json::Value::object();
  for (int i = 0; i < 256; ++i) vocabulary[std::string(byte_chars::character(static_cast<std::uint8_t>(i)))] = i;
  return fmt::format(R"({{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}}, "post_processor": null,
    "decoder": {{"type": "ByteLevel"}}, "model": {{"type": "BPE", "vocab": {}, "merges": []}}}})",
                     vocabulary.dump());
}

/// prompt_ids, or greedy_ids: the prompt and its continuation, as another implementation computed it.
inline std::vector<std::int32_t> recorded_ids(const char* name, const char* folder = "hf/llama") {
  const Array ids = SafetensorsFile::open(fixture(folder) / "expected.safetensors").array(name);
  std::vector<std::int32_t> result;
  for (std::int64_t i = 0; i < ids.size(); ++i) result.push_back(static_cast<std::int32_t>(ids.get_int(i)));
  return result;
}

/// Words with spaces between.
inline std::string words_of(std::span<const std::int32_t> ids) {
  std::string text;
  for (std::int32_t id : ids) text += fmt::format("{}w{}", text.empty() ? "" : " ", id);
  return text;
}

}  // namespace rlx::test
