#include "text/tokenizer/word_models/word_model.h"

#include <optional>

#include "text/tokenizer/word_models/bpe.h"
#include "text/tokenizer/word_models/unigram.h"
#include "text/tokenizer/word_models/word_level.h"
#include "text/tokenizer/word_models/word_piece.h"
#include "text/unicode/byte_chars.h"

namespace rlx {
namespace {

/// Files from before the member `type` existed are told apart by members that only one kind has.
std::string model_kind(const JsonField& field) {
  if (field.find("type")) return field.kind();
  if (field.find("max_input_chars_per_word")) return "WordPiece";
  if (field.find("merges")) return "BPE";
  if (field.find("unk_id")) return "Unigram";
  return field.kind();
}

}  // namespace

bool takes_bytes(const JsonField& field) {
  if (model_kind(field) != "BPE" || !field.at("vocab").value().is_object()) return false;
  std::size_t bytes = 0;
  for (const auto& [token, id] : field.at("vocab").value().items()) {
    const auto written = token.size() <= 2 ? byte_chars::bytes(token) : std::nullopt;
    bytes += written && written->size() == 1 ? 1 : 0;
  }
  return bytes == 256;
}

std::unique_ptr<WordModel> read_word_model(const JsonField& field, bool of_bytes) {
  const std::string kind = model_kind(field);
  if (kind == "BPE") return Bpe::read(field, of_bytes);
  if (kind == "Unigram") return Unigram::read(field);
  if (kind == "WordPiece") return std::make_unique<WordPiece>(field);
  if (kind == "WordLevel") return std::make_unique<WordLevel>(field);
  field.refuse_kind("BPE, Unigram, WordPiece, WordLevel");
}

}  // namespace rlx
