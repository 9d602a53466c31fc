#include <algorithm>
#include <limits>

#include "base/working.h"
#include "models/run/drafter.h"
#include "models/run/model_state.h"
#include "models/run/stoppable_text.h"
#include "models/run/token_chooser.h"

namespace rlx {

std::string_view name_of(FinishReason reason) {
  constexpr std::string_view names[] = {"unfinished", "end_of_text", "stop", "max_tokens", "context_full", "cancelled"};
  return names[static_cast<std::size_t>(reason)];
}

namespace {

void check_generation(const GenerateOptions& options, const TokenPredictor& predictor) {
  if (options.max_tokens < 0) fail("generate: max_tokens {} (allowed: 0 and more)", options.max_tokens);
  if (options.guesses < 0) fail("generate: {} guesses (allowed: 0 and more)", options.guesses);
  const std::int64_t most = predictor.context() - 2;  // one to forget, and one to go on with
  if (options.context_shift && (options.keep < 0 || options.keep > most))
    fail("generate: {} tokens are to be kept in a context of {} (allowed: 0..{})", options.keep, predictor.context(), most);
}

/// Whether no token of both says different things. Vocabularies of a family have other numbers of rows, and its models other special
/// tokens.
bool have_same_tokens(const Tokenizer& a, const Tokenizer& b, std::int64_t shared) {
  constexpr std::string_view sample = "The 3 quick brown f\xC3\xB6xes; jumped_over 1024 lazy dogs?\n\treturn x[i] += 0.5;";
  if (a.encode_ids(sample) != b.encode_ids(sample)) return false;
  for (std::int32_t id = 0; id < shared; ++id) {
    const std::string mine = a.bytes_of(id), other = b.bytes_of(id);
    if (mine != other && !mine.empty() && !other.empty()) return false;
  }
  return true;
}

}  // namespace

struct Generation::State {
  std::shared_ptr<Model::State> model;
  GenerateOptions options;
  TokenChooser chooser;
  std::vector<std::int32_t> tokens;  // what the answer goes on from, then the answer
  std::size_t start_length;
  std::vector<std::int32_t> prompt;  // empty where the answer goes on from it
  std::unique_ptr<Drafter> drafter;  // may be null
  std::uint64_t writer;              // as long as the model says the same, nobody else has changed the cache

  Array logits;                             // behind the last token that ran and behind each guess, (1, rows, vocabulary)
  std::int64_t row = 0;                     // of them, behind the last token
  std::vector<std::int32_t> guesses = {};   // tokens in the cache that are not known to be right
  bool known = true;                        // whether that row is there
  std::int64_t forgotten = 0;               // tokens behind the first `keep`, by context shifts
  std::int64_t guessed = 0, confirmed = 0;  // of the whole answer
  std::vector<std::vector<LogProbability>> log_probabilities = {};
  std::optional<StoppableText> text = std::nullopt;
  FinishReason reason = FinishReason::unfinished;

  /// Throws Error for a draft model with other tokens, whose guesses would cost time and never be right.
  static void check_draft(Model::State& model, const std::shared_ptr<Model::State>& draft) {
    if (model.draft.lock() == draft || !model.tokenizer || !draft->tokenizer) return;
    const std::int64_t shared = std::min(model.predictor->vocab_size(), draft->predictor->vocab_size());
    if (!have_same_tokens(*model.tokenizer, *draft->tokenizer, shared))
      fail("generate: {}: this draft model has other tokens than {}", draft->path.string(), model.path.string());
    model.draft = draft;
  }

  static std::unique_ptr<Drafter> drafter_for(Model::State& model, const GenerateOptions& options) {
    if (options.guesses == 0) return nullptr;
    if (!options.draft) return std::make_unique<PromptLookup>();
    Model::State& draft = *options.draft->state_;
    if (&model == &draft) fail("generate: a model cannot guess for itself (open it a second time)");
    check_draft(model, options.draft->state_);
    model.decoder_for("a draft model");
    return std::make_unique<DraftModel>(draft.decoder_for("guessing"), model.predictor->vocab_size(), options.cancelled);
  }

  std::span<const std::int32_t> answer() const { return std::span(tokens).subspan(start_length); }

  /// Tokens that the answer may still have.
  std::int64_t left() const {
    return options.max_tokens > 0 ? options.max_tokens - static_cast<std::int64_t>(answer().size())
                                  : std::numeric_limits<std::int64_t>::max();
  }

  /// Takes wrong guesses out of the cache.
  void drop_guesses() {
    TokenPredictor& predictor = *model->predictor;
    if (writer == model->writers) predictor.rewind(static_cast<std::int64_t>(predictor.ids().size() - guesses.size()));
    guesses.clear();
  }

  std::optional<std::int32_t> end(FinishReason why) {
    reason = why;
    drop_guesses();
    return std::nullopt;
  }

  /// Has the cache hold what stands before the last token, where others have changed it since. False where that is cancelled.
  bool take_cache_back() {
    if (writer == model->writers) return true;
    TokenPredictor& predictor = *model->predictor;
    std::vector<std::int32_t> held(tokens.begin(), tokens.end() - 1);
    if (forgotten > 0) held.erase(held.begin() + options.keep, held.begin() + options.keep + forgotten);
    Array read = predictor.begin(model->decoder() ? held : prompt, options.cancelled);
    if (!model->decoder() && held.size() > start_length) read = predictor.read(std::span(held).subspan(start_length), 1, {});
    writer = ++model->writers;
    return read.size() > 0;
  }

  /// Forgets the oldest half behind the kept tokens and reads the others again, with the last token behind them. False where that is
  /// cancelled.
  bool shift_context() {
    TokenPredictor& predictor = *model->predictor;
    const auto keep = static_cast<std::size_t>(options.keep);
    const std::size_t half = (predictor.ids().size() - keep + 1) / 2;
    const auto others = predictor.ids().subspan(keep + half);
    std::vector<std::int32_t> again(others.begin(), others.end());
    again.push_back(tokens.back());
    forgotten += static_cast<std::int64_t>(half);
    predictor.rewind(options.keep);
    logits = predictor.read(again, 1, options.cancelled);
    return logits.size() > 0;
  }

  /// Runs the last token, with guesses behind it. Why the answer ends, where that cannot be done.
  std::optional<FinishReason> run_last() {
    TokenPredictor& predictor = *model->predictor;
    row = 0;
    if (!take_cache_back()) return FinishReason::cancelled;
    const auto room = predictor.context() - static_cast<std::int64_t>(predictor.ids().size());
    if (room == 0 && !options.context_shift) return FinishReason::context_full;
    if (room == 0) return shift_context() ? std::nullopt : std::optional(FinishReason::cancelled);
    std::vector<std::int32_t> run(predictor.ids().begin(), predictor.ids().end());
    const std::size_t held = run.size();
    run.push_back(tokens.back());
    if (drafter && predictor.unread() <= options.guesses)  // else a run without guesses brings a recurrent model's states up to date
      guesses =
          drafter->guess(run, static_cast<std::size_t>(std::min({options.guesses, room - 1, left() - 1, predictor.most_together() - 1})));
    if (!guesses.empty()) predictor.mark();
    run.insert(run.end(), guesses.begin(), guesses.end());
    guessed += static_cast<std::int64_t>(guesses.size());
    logits = predictor.read(std::span(run).subspan(held), static_cast<std::int64_t>(run.size() - held), {});
    return std::nullopt;
  }

  /// Whether `id` was guessed: then the logits behind it are known.
  bool was_guessed(std::int32_t id) {
    if (guesses.empty() || guesses.front() != id) {
      drop_guesses();
      return false;
    }
    ++confirmed, ++row;
    guesses.erase(guesses.begin());
    return true;
  }

  std::optional<std::int32_t> step() {
    if (reason != FinishReason::unfinished) return std::nullopt;
    if (options.cancelled && options.cancelled()) return end(FinishReason::cancelled);
    if (left() <= 0) return end(FinishReason::max_tokens);
    if (chooser.is_complete()) return end(FinishReason::end_of_text);
    // The last token runs only when another is wanted.
    if (const auto why = known ? std::nullopt : run_last()) return end(*why);
    sampling::Choice sample = chooser.choose(logits, row, model->sampler, tokens);
    if (model->ends_answer(sample.id)) return end(FinishReason::end_of_text);
    tokens.push_back(sample.id);
    known = was_guessed(sample.id);
    if (options.sampling.log_probabilities >= 0) log_probabilities.push_back(std::move(sample.log_probabilities));
    return sample.id;
  }
};

std::optional<std::int32_t> Generation::next_token() {
  const Working working;
  return state_->step();
}

std::optional<std::string> Generation::next() {
  const Working working;
  State& s = *state_;
  if (!s.text) {
    const std::size_t before = s.model->decoder() ? s.start_length : 0;  // else the answer is a text of its own
    s.text.emplace(s.model->text(), s.options.stop, std::span(s.tokens).first(before));
  }
  while (s.reason == FinishReason::unfinished) {
    const auto id = s.step();
    std::string piece = id ? s.text->push(*id) : s.text->finish();
    if (s.text->stopped()) s.end(FinishReason::stop);
    if (!piece.empty()) return piece;
  }
  return std::nullopt;
}

std::span<const std::int32_t> Generation::ids() const { return state_->answer(); }
std::span<const std::vector<LogProbability>> Generation::log_probabilities() const { return state_->log_probabilities; }
FinishReason Generation::finish_reason() const { return state_->reason; }
Guesses Generation::guesses() const { return {state_->guessed, state_->confirmed}; }

Generation Model::generate(std::string_view prompt, GenerateOptions options) { return generate(tokenize(prompt), std::move(options)); }

Generation Model::generate(std::span<const std::int32_t> prompt, GenerateOptions options) {
  TokenPredictor& predictor = *state_->predictor;
  check_generation(options, predictor);
  if (options.context_shift) state_->decoder_for("context shift");
  std::unique_ptr<Drafter> drafter = Generation::State::drafter_for(*state_, options);
  std::optional<grammar::Matcher> matcher;
  if (options.grammar) matcher.emplace(options.grammar, state_->bytes_of_tokens());
  std::vector<std::int32_t> start = predictor.start_of(prompt);
  const std::size_t start_length = start.size();
  TokenChooser chooser(options, vocab_size(), start, std::move(matcher));
  Array logits = predictor.begin(prompt, options.cancelled);
  Generation::State state{.model = state_,
                          .options = std::move(options),
                          .chooser = std::move(chooser),
                          .tokens = std::move(start),
                          .start_length = start_length,
                          .prompt = state_->decoder() ? std::vector<std::int32_t>() : std::vector(prompt.begin(), prompt.end()),
                          .drafter = std::move(drafter),
                          .writer = ++state_->writers,
                          .logits = std::move(logits)};
  if (state.logits.size() == 0) state.reason = FinishReason::cancelled;
  return Generation(std::make_shared<Generation::State>(std::move(state)));
}

}  // namespace rlx
