#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rlx/model.h"

namespace rlx {

/// A text is cut into windows, each of which is read anew, its first token replaced by `first_token` where there is one. Without a stride
/// windows do not overlap, and all but the first context / 2 + 1 tokens of each are judged; with one the last `stride` of each are. What is
/// left behind the last whole window counts nowhere.
struct PerplexityOptions {
  std::int64_t context = 512;                              // tokens of a window, 3 at least
  std::int64_t stride = 0;                                 // from the beginning of a window to that of the next, below context; 0: context
  std::optional<std::int32_t> first_token = std::nullopt;  // what texts begin with, if anything
  std::function<void(std::size_t done, std::size_t windows)> progress = {};
  std::string file = {};  // where the text is from, for errors; empty: from no file
};

/// How well a model predicts a text.
struct Perplexity {
  std::int64_t windows = 0, tokens = 0;  // read, and judged
  double nll = 0, nll_error = 0;         // mean of -log(probability) of the judged tokens, in nats, and its standard error

  double value() const;  // exp(nll)
  double error() const;  // of the value: value() * nll_error
};

/// Judges tokens. Uses the model's cache, which holds the last window afterwards. Throws Error for a window that does not fit into the
/// context, for a text shorter than one, and for ids outside the vocabulary.
Perplexity perplexity(Model& model, std::span<const std::int32_t> ids, const PerplexityOptions& options = {});
/// Judges a text, with the first token that the model's tokenizer puts before texts, if any, in place of `first_token`.
Perplexity perplexity(Model& model, std::string_view text, PerplexityOptions options = {});

}  // namespace rlx
