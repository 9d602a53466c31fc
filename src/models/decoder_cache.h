#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "models/decoder_step.h"

namespace rlx {

/// Pages in which a layer keeps its tokens, one of them in turn, where it sees `window` of them (0: all) and nothing needs more: enough for
/// a window before each token of a run, wherever it begins. 0: it keeps the whole context.
std::int64_t ring_pages(const DecoderGraphOptions& options, std::int64_t window);
/// The input, i32 (1, ring_pages), that names the pages of such layers in the order of their tokens: first that of the first token which
/// the first of the run sees. Token t is in page t / page_tokens % ring_pages.
std::string ring_name(std::int64_t window);

/// What a layer keeps of its tokens under `name`, in f32, with `fresh` (N, heads, S, D) behind the tokens that it holds: (N, heads, rows,
/// D). What is behind the last does not matter.
Value appended_to_cache(Flow flow, const DecoderStep& step, const DecoderLayer& layer, std::string_view name, Value fresh);
/// The rows of this run's tokens there, (N, S).
Value rows_in_cache(const DecoderStep& step, const DecoderLayer& layer);

}  // namespace rlx
