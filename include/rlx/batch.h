#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/model.h"

namespace rlx {

struct BatchOptions {
  std::int64_t context = 0;            // most tokens of a prompt and its answer; 0: as many as the model was made for, at most 8192
  std::int64_t chunk = 512;            // most tokens that run together
  std::int64_t sequences = 8;          // most prompts that are answered at a time; memory grows with their tokens
  std::vector<Adapter> adapters = {};  // several add up
  CacheType cache = CacheType::usual;
  bool exact = false;  // as in ModelOptions
};

struct Answer {
  std::vector<std::int32_t> ids;  // without one that ended it
  std::string text;               // of them, up to a stop text; empty for a model without a tokenizer
  FinishReason finish_reason = FinishReason::unfinished;
};

/// A language model that answers many prompts at a time: a run costs little more for eight tokens than for one, as it reads the same
/// weights. Prompts and answers of unlike lengths run together without padding. Copies share everything; not for several threads at a time.
///
///     Batch batch = Batch::open("model.gguf", Session());
///     for (const Answer& answer : batch.generate(prompts, {.max_tokens = 64})) std::cout << answer.text << '\n';
class Batch {
 public:
  /// As Model::open.
  static Batch open(const std::filesystem::path& path, const Session& session, BatchOptions options = {});

  /// An answer to each prompt, in order, as Model::generate gives it but for what sums in another order round. As one ends, the next prompt
  /// takes its place; pages of 128 tokens that all prompts begin with run once. `cancelled` is asked before each run of up to `chunk`
  /// tokens. Throws Error for a prompt without tokens or longer than the context, and for options that a batch does not have: guesses,
  /// context_shift, grammar.
  std::vector<Answer> generate(std::span<const std::string> prompts, const GenerateOptions& options = {});
  std::vector<Answer> generate(std::span<const std::vector<std::int32_t>> prompts, const GenerateOptions& options = {});

  struct State;

 private:
  explicit Batch(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace rlx
