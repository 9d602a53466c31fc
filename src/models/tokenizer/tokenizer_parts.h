#pragma once
#include <memory>

#include "models/tokenizer/added_tokens.h"
#include "models/tokenizer/decoder.h"
#include "models/tokenizer/normalizer.h"
#include "models/tokenizer/post_processor.h"
#include "models/tokenizer/pre_tokenizer.h"
#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/word_model.h"

namespace rlx {

struct Tokenizer::Parts {
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  std::unique_ptr<WordModel> model;
  AddedTokens added_tokens;
  PostProcessor post_processor;
  std::unique_ptr<Decoder> decoder;
};

}  // namespace rlx
