#include "text/tokenizer/files/sentencepiece.h"

#include <cmath>

#include "base/names.h"
#include "formats/protobuf.h"
#include "rlx/error.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

using PieceType = SentencePieces::Type;

/// The ids that a training specification names; -1 where there is none.
struct SpecialIds {
  std::int64_t begin = 1, end = 2;
};

SentencePieces::Piece read_piece(ProtobufMessage message, std::size_t id, std::string_view what) {
  SentencePieces::Piece piece;
  while (const auto field = message.next()) {
    if (field->number == 1) piece.text = message.text(*field);
    if (field->number == 2) piece.score = message.number(*field);
    if (field->number == 3) {
      const std::uint64_t type = message.integer(*field);
      if (type < 1 || type > 6) fail("{}: piece {} has the type {} (allowed: 1..6)", what, id, type);
      piece.type = static_cast<PieceType>(type);
    }
  }
  if (!is_utf8(piece.text)) fail("{}: piece {} is not UTF-8: {}", what, id, quote_name(piece.text));
  if (!std::isfinite(piece.score)) fail("{}: piece {} has a score that is not finite", what, id);
  return piece;
}

void read_training(ProtobufMessage message, SentencePieces& model, SpecialIds& ids, std::string_view what) {
  while (const auto field = message.next()) {
    if (field->number == 3) {
      const std::uint64_t type = message.integer(*field);
      if (type != 1 && type != 2) fail("{}: the model has the type {} (allowed: 1, unigram, and 2, BPE)", what, type);
      model.unigram = type == 1;
    }
    if (field->number == 24 && message.boolean(*field)) fail("{}: white space as a suffix of words is not supported", what);
    if (field->number == 35) model.byte_fallback = message.boolean(*field);
    if (field->number == 41) ids.begin = static_cast<std::int64_t>(message.integer(*field));
    if (field->number == 42) ids.end = static_cast<std::int64_t>(message.integer(*field));
  }
}

void read_normalizer_rules(ProtobufMessage message, SentencePieces& model, std::string_view what) {
  while (const auto field = message.next()) {
    if (field->number == 2) model.charsmap = message.text(*field);
    if (field->number == 3) model.space_before_text = message.boolean(*field);
    if (field->number == 4) model.merge_spaces = message.boolean(*field);
    if (field->number == 5 && !message.boolean(*field)) fail("{}: white space that is not escaped is not supported", what);
  }
}

}  // namespace

std::optional<std::int32_t> SentencePieces::unknown() const {
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type == PieceType::unknown) return static_cast<std::int32_t>(id);
  }
  return std::nullopt;
}

SentencePieces read_sentencepiece(std::span<const std::byte> bytes, std::string_view what) {
  SentencePieces model;
  SpecialIds ids;
  ProtobufMessage message(bytes, what);
  while (const auto field = message.next()) {
    if (field->number == 1) model.pieces.push_back(read_piece(message.message(*field), model.pieces.size(), what));
    if (field->number == 2) read_training(message.message(*field), model, ids, what);
    if (field->number == 3) read_normalizer_rules(message.message(*field), model, what);
  }
  const auto control = [&](std::int64_t id) -> std::optional<std::int32_t> {
    if (id < 0 || static_cast<std::size_t>(id) >= model.pieces.size()) return std::nullopt;
    if (model.pieces[static_cast<std::size_t>(id)].type != PieceType::control) return std::nullopt;
    return static_cast<std::int32_t>(id);
  };
  (model.unigram ? model.end : model.begin) = control(model.unigram ? ids.end : ids.begin);
  return model;
}

}  // namespace rlx
