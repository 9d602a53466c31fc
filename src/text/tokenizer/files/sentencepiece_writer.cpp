#include "text/tokenizer/files/sentencepiece_writer.h"

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace rlx {
namespace {

/// A protocol buffer, field by field.
class ProtobufWriter {
 public:
  void integer(int field, std::uint64_t value) { key(field, 0), varint(value); }
  void number(int field, float value) {
    key(field, 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8) text_.push_back(static_cast<char>(bits >> shift & 0xFF));
  }
  void bytes(int field, std::string_view value) { key(field, 2), varint(value.size()), text_ += value; }
  const std::string& text() const { return text_; }

 private:
  void key(int field, unsigned wire) { varint(static_cast<unsigned>(field) << 3 | wire); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(value | 0x80));
    text_.push_back(static_cast<char>(value));
  }

  std::string text_;
};

}  // namespace

std::string sentencepiece_model(const GgufTokens& tokens, bool unigram) {
  const GgufFile& file = tokens.file();
  const std::vector<double> scores = file.value("tokenizer.ggml.scores").numbers();
  ProtobufWriter model, training, rules;
  bool bytes = false;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    ProtobufWriter piece;
    piece.bytes(1, tokens.token(id));
    piece.number(2, id < scores.size() ? static_cast<float>(scores[id]) : 0);
    piece.integer(3, static_cast<std::uint64_t>(tokens.kind(id)));
    bytes = bytes || tokens.kind(id) == GgufTokens::Kind::byte;
    model.bytes(1, piece.text());
  }
  training.integer(3, unigram ? 1 : 2);
  training.integer(35, bytes);
  constexpr std::pair<int, std::string_view> roles[] = {{40, "unknown"}, {41, "bos"}, {42, "eos"}, {43, "padding"}};
  for (const auto& [field, role] : roles) {  // -1 is ten bytes of sign
    const auto id = tokens.id(role);
    training.integer(field, id ? *id : ~std::uint64_t{0});
  }
  model.bytes(2, training.text());
  if (const GgufValue* map = file.find_value("tokenizer.ggml.precompiled_charsmap"))
    rules.bytes(2, {reinterpret_cast<const char*>(map->bytes().data()), map->bytes().size()});
  rules.integer(3, tokens.flag("add_space_prefix", true));
  rules.integer(4, tokens.flag("remove_extra_whitespaces", unigram));
  rules.integer(5, 1);
  model.bytes(3, rules.text());
  return model.text();
}

}  // namespace rlx
