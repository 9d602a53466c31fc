#include "text/tokenizer/files/sentencepiece_writer.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "base/files/protobuf_writer.h"

namespace rlx {
std::string sentencepiece_model(const GgufTokens& tokens, bool unigram) {
  const GgufFile& file = tokens.file();
  const std::vector<double> scores = file.value("tokenizer.ggml.scores").numbers();
  ProtobufWriter model, training, rules;
  bool bytes = false;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    ProtobufWriter piece;
    piece.text(1, tokens.token(id));
    piece.number(2, id < scores.size() ? static_cast<float>(scores[id]) : 0);
    piece.integer(3, static_cast<std::uint64_t>(tokens.kind(id)));
    bytes = bytes || tokens.kind(id) == GgufTokens::Kind::byte;
    model.message(1, piece);
  }
  training.integer(3, unigram ? 1 : 2);
  training.integer(35, bytes);
  constexpr std::pair<std::uint32_t, std::string_view> roles[] = {{40, "unknown"}, {41, "bos"}, {42, "eos"}, {43, "padding"}};
  for (const auto& [field, role] : roles) {  // -1 is ten bytes of sign
    const auto id = tokens.id(role);
    training.integer(field, id ? *id : ~std::uint64_t{0});
  }
  model.message(2, training);
  if (const GgufValue* map = file.find_value("tokenizer.ggml.precompiled_charsmap"))
    rules.text(2, {reinterpret_cast<const char*>(map->bytes().data()), map->bytes().size()});
  rules.integer(3, tokens.flag("add_space_prefix", true));
  rules.integer(4, tokens.flag("remove_extra_whitespaces", unigram));
  rules.integer(5, 1);
  model.message(3, rules);
  return model.bytes();
}

}  // namespace rlx
