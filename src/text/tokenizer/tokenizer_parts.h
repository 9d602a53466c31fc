#pragma once
#include <memory>

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/token_decoder.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/word_models/word_model.h"

namespace rlx {

struct Tokenizer::Parts {
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  std::unique_ptr<WordModel> model;
  AddedTokens added_tokens;
  PostProcessor post_processor;
  std::unique_ptr<TokenDecoder> decoder;
};

}  // namespace rlx
