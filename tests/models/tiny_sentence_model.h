#pragma once
#include <string>

#include "fixture.h"
#include "formats/temporary_folder.h"

namespace rlx::test {

/// A folder as sentence-transformers saves it: the weights of fixtures/hf/bert behind a tokenizer of ten words.
class TinySentenceModel {
 public:
  static constexpr std::size_t width = 64;

  TinySentenceModel() {
    for (const char* name : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(fixture("hf/bert") / name, folder_ / name, std::filesystem::copy_options::overwrite_existing);
      std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
    }
    write("tokenizer.json", R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
      {"id": 0, "content": "[PAD]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 1, "content": "[UNK]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 2, "content": "[CLS]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 3, "content": "[SEP]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
      "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
      "pre_tokenizer": {"type": "BertPreTokenizer"},
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                   {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
        "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
      "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
      "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
        "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "a": 4, "cat": 5, "dog": 6, "sat": 7, "ran": 8, "##s": 9}}})");
    write("modules.json", R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
      {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
    write("sentence_bert_config.json", R"({"max_seq_length": 16, "do_lower_case": false})");
    std::filesystem::create_directory(folder_ / "1_Pooling");
    write("1_Pooling/config.json", R"({"word_embedding_dimension": 64, "pooling_mode_mean_tokens": true})");
  }

  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path operator/(std::string_view name) const { return folder_ / name; }
  void write(std::string_view name, std::string_view text) const { write_text(folder_ / name, text); }

 private:
  TemporaryFolder folder_;
};

}  // namespace rlx::test
