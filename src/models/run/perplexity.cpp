#include "rlx/perplexity.h"

#include <algorithm>
#include <cmath>

#include "rlx/error.h"

namespace rlx {
namespace {

/// -log(softmax(logits)[id]), in nats.
double surprise(std::span<const float> logits, std::int32_t id) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float each : logits) sum += std::exp(each - largest);
  return std::log(sum) - (logits[static_cast<std::size_t>(id)] - largest);
}

/// Sum and sum of squares of what was judged.
struct Surprises {
  std::int64_t count = 0;
  double sum = 0, squares = 0;

  void add(double nats) {
    ++count;
    sum += nats, squares += nats * nats;
  }
  double mean() const { return sum / static_cast<double>(count); }
  double standard_error() const {
    if (count < 2) return 0;
    const double variance = squares / static_cast<double>(count) - mean() * mean();
    return std::sqrt(std::max(variance, 0.0) / static_cast<double>(count - 1));
  }
};

/// Reads a window and judges its last `judged` tokens.
void judge(Model& model, std::span<const std::int32_t> window, std::int64_t judged, Surprises& out) {
  model.rewind(0);
  const std::vector<float> logits = model.append(window, judged + 1);  // the last predict what is behind the window
  const auto vocab = static_cast<std::size_t>(model.vocab_size()), rows = static_cast<std::size_t>(judged);
  for (std::size_t i = 0; i < rows; ++i) out.add(surprise(std::span(logits).subspan(i * vocab, vocab), window[window.size() - rows + i]));
}

std::string_view source_of(const PerplexityOptions& options) {
  return options.file.empty() ? "perplexity" : std::string_view(options.file);
}

void check_windows(const Model& model, std::span<const std::int32_t> ids, const PerplexityOptions& options) {
  if (options.context < 3 || options.context > model.context())
    fail("perplexity: windows of {} tokens (allowed: 3..{}, the model's context)", options.context, model.context());
  if (options.stride < 0 || options.stride >= options.context)
    fail("perplexity: windows of {} tokens every {} tokens (allowed: below the length of a window)", options.context, options.stride);
  if (static_cast<std::int64_t>(ids.size()) < options.context)
    fail("{}: the text has {} tokens (needed: a window of {} at least)", source_of(options), ids.size(), options.context);
}

/// The token that the model's tokenizer puts before a text.
std::optional<std::int32_t> token_before_texts(const Model& model) {
  const auto with = model.tokenize("a", true), without = model.tokenize("a", false);
  if (with.size() <= without.size() || std::equal(without.begin(), without.end(), with.begin())) return std::nullopt;
  return with.front();
}

}  // namespace

double Perplexity::value() const { return std::exp(nll); }
double Perplexity::error() const { return value() * nll_error; }

Perplexity perplexity(Model& model, std::span<const std::int32_t> ids, const PerplexityOptions& options) {
  check_windows(model, ids, options);
  const std::int64_t step = options.stride > 0 ? options.stride : options.context;
  const std::int64_t judged = options.stride > 0 ? options.stride : options.context - options.context / 2 - 1;
  const std::int64_t windows = (static_cast<std::int64_t>(ids.size()) - options.context) / step + 1;
  Surprises surprises;
  for (std::int64_t i = 0; i < windows; ++i) {
    const auto begin = ids.begin() + i * step;
    std::vector<std::int32_t> window(begin, begin + options.context);
    if (options.first_token) window.front() = *options.first_token;
    judge(model, window, judged, surprises);
    if (options.progress) options.progress(static_cast<std::size_t>(i + 1), static_cast<std::size_t>(windows));
  }
  return {.windows = windows, .tokens = surprises.count, .nll = surprises.mean(), .nll_error = surprises.standard_error()};
}

Perplexity perplexity(Model& model, std::string_view text, PerplexityOptions options) {
  options.first_token = token_before_texts(model);
  std::vector<std::int32_t> ids = model.tokenize(text, false);
  if (ids.empty()) fail("{}: the text has no tokens", source_of(options));
  if (options.first_token) ids.insert(ids.begin(), *options.first_token);
  return perplexity(model, ids, options);
}

}  // namespace rlx
