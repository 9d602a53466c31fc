#include "text/tokenizer/word_models/word_level.h"

#include "base/names.h"

namespace rlx {

WordLevel::WordLevel(const JsonField& field) {
  vocabulary_.read(field.at("vocab"));
  const JsonField name = field.at("unk_token");
  const auto id = vocabulary_.id(name.as_string());
  if (!id) name.refuse("{} is not in the vocabulary", quote_name(name.as_string()));
  unknown_ = *id;
}

}  // namespace rlx
