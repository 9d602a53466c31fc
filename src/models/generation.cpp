#include <algorithm>

#include "models/model_state.h"
#include "models/stoppable_text.h"
#include "models/token_chooser.h"

namespace rlx {

std::string_view name_of(FinishReason reason) {
  constexpr std::string_view names[] = {"unfinished", "end_of_text", "stop", "max_tokens", "context_full"};
  return names[static_cast<std::size_t>(reason)];
}

struct Generation::State {
  std::shared_ptr<Model::State> model;
  GenerateOptions options;
  TokenChooser chooser;
  std::vector<std::int32_t> tokens;  // the prompt, then the answer
  std::size_t prompt_length;
  std::vector<float> logits = {};  // behind the last token that ran
  std::vector<std::vector<LogProbability>> log_probabilities = {};
  std::optional<StoppableText> text = std::nullopt;
  FinishReason reason = FinishReason::unfinished;

  std::span<const std::int32_t> answer() const { return std::span(tokens).subspan(prompt_length); }

  std::optional<std::int32_t> end(FinishReason why) {
    reason = why;
    return std::nullopt;
  }

  std::optional<std::int32_t> step() {
    if (reason != FinishReason::unfinished) return std::nullopt;
    if (options.max_tokens > 0 && static_cast<std::int64_t>(answer().size()) >= options.max_tokens) return end(FinishReason::max_tokens);
    if (chooser.is_complete()) return end(FinishReason::end_of_text);
    CachedDecoder& decoder = model->decoder;
    if (!answer().empty()) {  // the last token runs only when another is wanted
      if (static_cast<std::int64_t>(decoder.ids().size()) >= decoder.context()) return end(FinishReason::context_full);
      logits = decoder.append(answer().last(1));
    }
    sampling::Sample sample = chooser.choose(logits, tokens);
    if (model->ends_answer(sample.id)) return end(FinishReason::end_of_text);
    tokens.push_back(sample.id);
    if (options.sampling.log_probabilities >= 0) log_probabilities.push_back(std::move(sample.log_probabilities));
    return sample.id;
  }
};

std::optional<std::int32_t> Generation::next_token() { return state_->step(); }

std::optional<std::string> Generation::next() {
  State& s = *state_;
  if (!s.text) s.text.emplace(s.model->text(), s.options.stop, std::span(s.tokens).first(s.prompt_length));
  while (s.reason == FinishReason::unfinished) {
    const auto id = s.step();
    std::string piece = id ? s.text->push(*id) : s.text->finish();
    if (s.text->stopped()) s.reason = FinishReason::stop;
    if (!piece.empty()) return piece;
  }
  return std::nullopt;
}

std::span<const std::int32_t> Generation::ids() const { return state_->answer(); }
std::span<const std::vector<LogProbability>> Generation::log_probabilities() const { return state_->log_probabilities; }
FinishReason Generation::finish_reason() const { return state_->reason; }

Generation Model::generate(std::string_view prompt, GenerateOptions options) { return generate(tokenize(prompt), std::move(options)); }

Generation Model::generate(std::span<const std::int32_t> prompt, GenerateOptions options) {
  if (options.max_tokens < 0) fail("generate: max_tokens {} (allowed: 0 and more)", options.max_tokens);
  std::optional<grammar::Matcher> matcher;
  if (options.grammar) matcher.emplace(options.grammar, state_->bytes_of_tokens());
  TokenChooser chooser(options, vocab_size(), prompt, std::move(matcher));
  CachedDecoder& decoder = state_->decoder;
  const auto held = decoder.ids();
  const auto common = std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end()).first - held.begin();
  // The last token runs in any case: its logits are wanted.
  const std::int64_t kept = std::min<std::int64_t>(common, std::max<std::int64_t>(static_cast<std::int64_t>(prompt.size()) - 1, 0));
  decoder.rewind(kept);
  std::vector<float> logits = decoder.append(prompt.subspan(static_cast<std::size_t>(kept)));
  return Generation(std::make_shared<Generation::State>(
      Generation::State{state_, std::move(options), std::move(chooser), {prompt.begin(), prompt.end()}, prompt.size(), std::move(logits)}));
}

}  // namespace rlx
