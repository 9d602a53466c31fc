#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/adapter.h"
#include "rlx/cache_type.h"
#include "rlx/chat_template.h"
#include "rlx/grammar.h"
#include "rlx/sampling.h"
#include "rlx/session.h"

namespace rlx {

/// Layers of a model, in their order, that a session computes.
struct LayersOn {
  Session session;
  std::int64_t layers = 0;
};

struct ModelOptions {
  std::int64_t context = 0;            // tokens that fit, prompt and answer; 0: as many as the model was made for, at most 8192
  std::int64_t chunk = 512;            // most tokens of a prompt that run together
  std::vector<Adapter> adapters = {};  // several add up
  CacheType cache = CacheType::usual;
  /// A token has the same bits in a prompt of any length, behind a kept cache, a few at a time and alone; with longrope as long as the text
  /// stays on one side of the length behind which all keys are turned otherwise. Without it those of a prompt, and of more than 16 that run
  /// together, may be rounded otherwise (see CacheType), but where keys are f32; guesses change no bits in any case. Prompts take longer,
  /// those of models with heads of state spaces (Mamba-2) many times as long. An encoder with a decoder answers so in any case.
  bool exact = false;
  /// The first layers, which are computed by other sessions, such as on a GPU that has not the memory for all. The model's session computes
  /// the rest. Weights and caches lie where their layers are computed; of a run the hidden states cross. Not for an encoder with a decoder.
  std::vector<LayersOn> layers_on = {};
};

class Model;

struct GenerateOptions {
  std::int64_t max_tokens = 0;                    // of the answer; 0: until the context is full
  std::vector<std::string> stop = {};             // texts that end the answer and are no part of it
  SamplingOptions sampling = {.temperature = 0};  // how tokens are chosen; by itself the likeliest, the lowest id on ties
  AnswerGrammar grammar = {};                     // what the answer's text may be; it ends where nothing may follow
  /// Where the context is full, the oldest half of the tokens behind the first `keep` is forgotten, the others are read again and the
  /// answer goes on; else it ends.
  bool context_shift = false;
  std::int64_t keep = 0;
  /// Tokens that are guessed at a time (speculative decoding), by a smaller model with the same tokens or, without one, from what followed
  /// the same tokens before; at most 14 where more would not be `exact`, and none of models with heads of state spaces (Mamba-2). Right
  /// ones cost less than others; guesses do not change which tokens are chosen.
  std::int64_t guesses = 0;
  std::shared_ptr<Model> draft = {};
  /// Chooses the next token from the logits (-infinity: the grammar forbids it) and all tokens so far, with those of the prompt where it is
  /// continued. None: sampling.
  std::function<std::int32_t(std::span<const float> logits, std::span<const std::int32_t> ids)> choose = {};
  /// Asked between the runs of a long prompt, or of what a context shift reads again, and before each token, by the thread that generates:
  /// true ends the answer. What was read stays in the cache.
  std::function<bool()> cancelled = {};
};

/// A turn of a conversation: role is "system", "user" or "assistant".
struct ChatMessage {
  std::string role, content;
};

enum class FinishReason : std::uint8_t { unfinished, end_of_text, stop, max_tokens, context_full, cancelled };
std::string_view name_of(FinishReason reason);

/// Tokens of an answer that were guessed, and those of them that were right.
struct Guesses {
  std::int64_t tried = 0, right = 0;
};

/// An answer in the making: a range of pieces of text, each computed when it is asked for. It uses its model's cache, and reads its own
/// text again where others have changed that meanwhile.
class Generation {
 public:
  /// The next token, or nothing when the answer is finished. Not to be mixed with `next`.
  std::optional<std::int32_t> next_token();
  /// The next piece of text, whole code points, never empty; nothing when the answer is finished.
  std::optional<std::string> next();

  /// Tokens of the answer so far, without one that ended it.
  std::span<const std::int32_t> ids() const;
  /// For each of them what SamplingOptions::log_probabilities asked for: of itself, then of the likeliest. Empty unless asked for.
  std::span<const std::vector<LogProbability>> log_probabilities() const;
  FinishReason finish_reason() const;
  Guesses guesses() const;

  class Iterator {
   public:
    using value_type = std::string;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(Generation& generation) : generation_(&generation), piece_(generation.next()) {}
    const std::string& operator*() const { return *piece_; }
    Iterator& operator++() {
      piece_ = generation_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.piece_; }

   private:
    Generation* generation_ = nullptr;
    std::optional<std::string> piece_;
  };
  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

  struct State;
  explicit Generation(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

/// A language model: a GGUF file, or a folder in Hugging Face's layout. It has one cache of tokens, the conversation so far. Copies share
/// everything, the cache too; not for several threads at a time. An encoder with a decoder (T5) reads a prompt as a whole and answers it
/// with a text of its own: `generate` is all that it does, and what needs a text to continue is an Error.
///
///     Model model = load("model.gguf");
///     for (const std::string& piece : model.generate("Once upon a time", {.max_tokens = 64})) std::cout << piece << std::flush;
class Model {
 public:
  /// Reads, checks and compiles everything. Throws Error naming the file and what is missing, wrong or not supported.
  static Model open(const std::filesystem::path& path, const Session& session, ModelOptions options = {});

  std::int64_t vocab_size() const;
  /// Tokens that fit into the cache; of an encoder with a decoder as many of a prompt as of its answer.
  std::int64_t context() const;
  /// Tokens that its makers trained it to see, as its files say: what it says behind more may make no sense.
  std::int64_t trained_context() const;
  /// False for an encoder with a decoder.
  bool continues_texts() const;

  /// The ids of a text, with the special tokens that the model's tokenizer puts around it. Throws Error for a model without a tokenizer.
  std::vector<std::int32_t> tokenize(std::string_view text, bool add_special_tokens = true) const;
  std::string text_of(std::span<const std::int32_t> ids) const;
  /// What a token adds to a text that has begun: its space too, and perhaps a part of a code point. Empty for special tokens.
  std::string bytes_of(std::int32_t id) const;
  /// A conversation as the model was taught to read it, up to where its answer begins. It brings its own special tokens: tokenize it
  /// without more. Throws Error for a model without a chat template, and for what the template refuses.
  std::string chat_prompt(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;
  /// The same of messages that have more than a role and content: JSON, as PromptTemplate::prompt takes it.
  std::string chat_prompt(std::string_view messages, const ChatOptions& options = {}) const;
  /// `otherwise` with the numbers in place that the model's files recommend: general.sampling.* of a GGUF file, or temperature, top_k,
  /// typical_p, top_p, min_p, repetition_penalty and do_sample of a folder's generation_config.json.
  SamplingOptions recommended_sampling(SamplingOptions otherwise = {}) const;
  /// What ends an answer.
  std::span<const std::int32_t> end_tokens() const;

  /// The tokens in the cache.
  std::span<const std::int32_t> ids() const;
  /// Appends tokens and gives the logits behind the last `wanted` of them, 1..ids.size(): (wanted, vocab_size). Throws Error for no
  /// tokens, for ids outside the vocabulary, and for more tokens than fit; then nothing is appended.
  std::vector<float> append(std::span<const std::int32_t> ids, std::int64_t wanted = 1);
  /// Forgets all but the first `length` tokens of the cache.
  void rewind(std::int64_t length);
  /// Writes the cache with its tokens to a file, atomically, and with it texts by names, for who loads it. Throws Error for an empty cache.
  void save_cache(const std::filesystem::path& file, const std::map<std::string, std::string>& notes = {}) const;
  /// Replaces the cache by one that was saved; the texts that were saved with it. Throws Error naming the file for one that is no cache, is
  /// of another model, precision or type, or has more tokens than fit; then nothing changes.
  std::map<std::string, std::string> load_cache(const std::filesystem::path& file);

  /// Continues a prompt. What the cache holds of the prompt's beginning is not computed again. Throws Error as append.
  Generation generate(std::string_view prompt, GenerateOptions options = {});
  Generation generate(std::span<const std::int32_t> prompt, GenerateOptions options = {});

 private:
  friend struct Generation::State;
  struct State;
  explicit Model(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// What products of a language model are usually computed in: bf16 where most of its weights are stored so and the device multiplies it,
/// which rounds activations as weights were; else f32. Throws Error as Model::open for files that cannot be read.
Precision usual_precision(const std::filesystem::path& model, const Device& device = Device::usual());

/// Opens a model with a session of its own, of its usual precision.
Model load(const std::filesystem::path& path, ModelOptions options = {});

}  // namespace rlx
