#include "rlx/batch.h"

#include <algorithm>
#include <limits>
#include <list>
#include <optional>

#include "base/working.h"
#include "models/run/batches/batched_decoder.h"
#include "models/run/model_state.h"
#include "models/run/stoppable_text.h"
#include "models/run/token_chooser.h"

namespace rlx {

struct Batch::State {
  BatchedDecoder decoder;
  sampling::DeviceSampler sampler;
  std::optional<Tokenizer> tokenizer;
  std::vector<std::int32_t> end_tokens;
  std::size_t sequences;
};

namespace {

using Prompt = std::vector<std::int32_t>;

BatchedDecoder::Options batch_decoder_options(const DecoderFiles& files, const BatchOptions& options, Precision precision) {
  constexpr std::int64_t longest = std::numeric_limits<std::int32_t>::max();
  if (options.chunk < 1 || options.context < 0 || options.context > longest || options.sequences < 1 || options.sequences > 4096)
    fail("batch: {} sequences with a context of {} in chunks of {} (allowed: 1..4096, 0..{}, 1 and more)", options.sequences,
         options.context, options.chunk, longest);
  const std::int64_t context = options.context > 0 ? options.context : std::min(files.config.max_positions, usual_context);
  // The pages that all begin with are one sequence more.
  return {.context = context,
          .chunk = options.chunk,
          .tokens = (options.sequences + 1) * (context + page_tokens),
          .cache = resolved(options.cache, precision),
          .exact = options.exact};
}

/// Whole pages of tokens that all prompts begin with, where each has more behind them.
std::size_t common_tokens(std::span<const Prompt> prompts) {
  if (prompts.size() < 2) return 0;
  std::size_t common = prompts[0].size();
  for (const Prompt& prompt : prompts) {
    const auto [mine, first] = std::mismatch(prompt.begin(), prompt.end() - 1, prompts[0].begin(), prompts[0].end());
    common = std::min(common, static_cast<std::size_t>(mine - prompt.begin()));
  }
  return common / page_tokens * page_tokens;
}

/// One answer in the making.
struct Turn {
  std::size_t prompt;  // its number
  BatchedDecoder::Sequence sequence;
  TokenChooser chooser;
  std::vector<std::int32_t> tokens;  // the prompt, then the answer
  std::size_t next;                  // of them, the first that has not run
  std::optional<StoppableText> text;
};

/// Answers a list of prompts.
class Turns {
 public:
  Turns(Batch::State& batch, std::span<const Prompt> prompts, const GenerateOptions& options)
      : batch_(batch), prompts_(prompts), options_(options), answers_(prompts.size()), common_(common_tokens(prompts)) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  /// What was begun leaves the batch, whatever ended it.
  ~Turns() {
    for (const Turn& turn : running_) batch_.decoder.remove(turn.sequence);
    if (root_) batch_.decoder.remove(*root_);
  }

  std::vector<Answer> run() {
    if (common_ > 0 && !read_common()) return cancelled();
    for (std::size_t next = 0; next < prompts_.size() || !running_.empty();) {
      while (next < prompts_.size() && running_.size() < batch_.sequences) begin(next++);
      std::vector<BatchedDecoder::Tokens> tokens;
      for (const Turn& turn : running_) tokens.push_back({turn.sequence, std::span(turn.tokens).subspan(turn.next)});
      const BatchedDecoder::Logits logits = batch_.decoder.append(tokens, options_.cancelled);
      if (logits.empty()) return cancelled();
      choose_next(logits);
      std::erase_if(running_, [&](const Turn& turn) {
        const bool ends = answers_[turn.prompt].finish_reason != FinishReason::unfinished;
        if (ends) batch_.decoder.remove(turn.sequence);
        return ends;
      });
    }
    return std::move(answers_);
  }

 private:
  /// The answers as far as they are.
  std::vector<Answer> cancelled() {
    for (Turn& turn : running_) end(turn, FinishReason::cancelled);
    for (Answer& answer : answers_)
      if (answer.finish_reason == FinishReason::unfinished) answer.finish_reason = FinishReason::cancelled;
    return std::move(answers_);
  }

  /// False where it is cancelled.
  bool read_common() {
    root_ = batch_.decoder.add();
    const std::vector<BatchedDecoder::Tokens> tokens{{*root_, std::span(prompts_[0]).first(common_)}};
    return !batch_.decoder.append(tokens, options_.cancelled).empty();
  }

  void begin(std::size_t number) {
    const Prompt& prompt = prompts_[number];
    TokenChooser chooser(options_, batch_.decoder.config().vocab_size, prompt, std::nullopt);
    const BatchedDecoder::Sequence sequence = root_ ? batch_.decoder.copy(*root_) : batch_.decoder.add();
    Turn turn{number, sequence, std::move(chooser), prompt, common_, std::nullopt};
    if (batch_.tokenizer) turn.text.emplace(*batch_.tokenizer, options_.stop, prompt);
    running_.push_back(std::move(turn));
  }

  /// Those of a run together.
  void choose_next(const BatchedDecoder::Logits& logits) {
    for (std::size_t run = 0; run < logits.runs.size(); ++run) {
      std::vector<TokenChooser::Next> waiting;
      std::vector<Turn*> turns;
      auto place = logits.places.begin();
      for (Turn& turn : running_) {
        if (place->run == run) waiting.push_back({&turn.chooser, place->row, turn.tokens}), turns.push_back(&turn);
        ++place;
      }
      const auto choices = TokenChooser::choose_together(waiting, logits.runs[run], batch_.sampler);
      for (std::size_t i = 0; i < turns.size(); ++i) step(*turns[i], choices[i].id);
    }
  }

  void step(Turn& turn, std::int32_t id) {
    Answer& answer = answers_[turn.prompt];
    turn.next = turn.tokens.size();
    turn.tokens.push_back(id);
    if (std::ranges::count(batch_.end_tokens, id) > 0) return end(turn, FinishReason::end_of_text);
    answer.ids.push_back(id);
    if (turn.text) answer.text += turn.text->push(id);
    if (turn.text && turn.text->stopped()) return end(turn, FinishReason::stop);
    if (options_.max_tokens > 0 && static_cast<std::int64_t>(answer.ids.size()) >= options_.max_tokens)
      return end(turn, FinishReason::max_tokens);
    if (static_cast<std::int64_t>(turn.tokens.size()) > batch_.decoder.context()) end(turn, FinishReason::context_full);
  }

  void end(Turn& turn, FinishReason reason) {
    Answer& answer = answers_[turn.prompt];
    if (turn.text) answer.text += turn.text->finish();
    const bool stopped = turn.text && turn.text->stopped();  // by what was held back
    answer.finish_reason = stopped ? FinishReason::stop : reason;
  }

  Batch::State& batch_;
  std::span<const Prompt> prompts_;
  const GenerateOptions& options_;
  std::vector<Answer> answers_;
  std::list<Turn> running_;
  std::size_t common_;
  std::optional<BatchedDecoder::Sequence> root_;
};

void check_answers(std::span<const Prompt> prompts, const GenerateOptions& options, const BatchedDecoder& decoder) {
  if (options.max_tokens < 0) fail("batch: max_tokens {} (allowed: 0 and more)", options.max_tokens);
  if (options.guesses != 0 || options.context_shift || options.grammar)
    fail("batch: guesses, a context shift or a grammar (allowed: one answer at a time, by Model::generate)");
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (prompts[i].empty() || static_cast<std::int64_t>(prompts[i].size()) > decoder.context())
      fail("batch: prompt {} has {} tokens (allowed: 1..{})", i, prompts[i].size(), decoder.context());
}

}  // namespace

Batch Batch::open(const std::filesystem::path& path, const Session& session, BatchOptions options) {
  const DecoderFiles files = DecoderFiles::open(path, options.adapters);
  const BatchedDecoder::Options its = batch_decoder_options(files, options, session.precision());
  std::optional<Tokenizer> tokenizer = tokenizer_of(path, files.checkpoint);
  return Batch(std::make_shared<State>(State{.decoder = BatchedDecoder(session, files, its),
                                             .sampler = sampling::DeviceSampler(session, files.config.vocab_size),
                                             .tokenizer = std::move(tokenizer),
                                             .end_tokens = files.end_tokens,
                                             .sequences = static_cast<std::size_t>(options.sequences)}));
}

std::vector<Answer> Batch::generate(std::span<const Prompt> prompts, const GenerateOptions& options) {
  const Working working;
  check_answers(prompts, options, state_->decoder);
  return Turns(*state_, prompts, options).run();
}

std::vector<Answer> Batch::generate(std::span<const std::string> prompts, const GenerateOptions& options) {
  if (!state_->tokenizer) fail("the model has no tokenizer: it takes and gives tokens only");
  std::vector<Prompt> ids;
  for (const std::string& prompt : prompts) ids.push_back(state_->tokenizer->encode_ids(prompt, true));
  return generate(ids, options);
}

}  // namespace rlx
