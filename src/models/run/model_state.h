#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config/model_chat_template.h"
#include "models/config/recommended_sampling.h"
#include "models/run/caches/cached_decoder.h"
#include "models/run/sampling/device_sampler.h"
#include "rlx/model.h"
#include "text/grammar/token_bytes.h"
#include "text/tokenizer/tokenizer.h"

namespace rlx {

/// Tokens of a context where nobody says how many, and the model was made for more.
inline constexpr std::int64_t usual_context = 8192;

/// The tokenizer of a GGUF file or a folder, where there is one.
std::optional<Tokenizer> tokenizer_of(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// What copies of a model share.
struct Model::State {
  std::unique_ptr<TokenPredictor> predictor;
  sampling::DeviceSampler sampler;
  std::optional<Tokenizer> tokenizer;
  std::vector<std::int32_t> end_tokens;
  std::filesystem::path path;
  std::string fingerprint;                                      // of caches
  std::vector<RecommendedNumber> sampling;                      // as its makers recommend
  std::optional<ChatTemplate> chat;                             // of a folder read when a chat begins
  std::shared_ptr<const grammar::TokenBytes> token_bytes = {};  // made when a grammar asks for them
  std::weak_ptr<const State> draft = {};                        // the last one, which has the same tokens
  std::int64_t trained_context = 0;
  std::uint64_t writers = 0;  // answers that have used the cache, and changes by others

  /// The predictor where it continues texts, else null.
  CachedDecoder* decoder() const { return dynamic_cast<CachedDecoder*>(predictor.get()); }
  /// The same for `what`, which needs one: throws Error where there is none.
  CachedDecoder& decoder_for(std::string_view what) const;
  /// Throws Error where there is none.
  const Tokenizer& text() const;
  /// For grammars.
  const std::shared_ptr<const grammar::TokenBytes>& bytes_of_tokens();
  /// Throws Error where there is none.
  const ChatTemplate& chat_template();
  bool ends_answer(std::int32_t id) const;
};

}  // namespace rlx
