#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "models/layers/decoder_step.h"

namespace rlx {

/// Pages of one sequence that a run reads of layers that see `window` tokens (0: all), at most: enough for a window before each token,
/// wherever the run begins. 0: nothing is saved by it, they keep the whole context.
std::int64_t window_pages(const DecoderGraphOptions& options, std::int64_t window);
/// The windows whose layers keep their tokens in pages that are those of no others; 0: all layers that have none, of a graph with pages.
std::set<std::int64_t> windows_in_pages(const DecoderConfig& config, const DecoderGraphOptions& options);
/// The window of the layer that a state belongs to, by its name.
std::int64_t window_of_state(const DecoderConfig& config, std::string_view state);

/// Layers of a sequence with a cache of its own keep a window in a ring: token t is in page t / page_tokens % window_pages. The input,
/// i32 (1, window_pages), names the pages in the order of their tokens: first that of the first token which the first of the run sees.
std::string ring_name(std::int64_t window);
/// The inputs of a graph with pages: (n, P) as above, and (n), which of a sequence's pages is the first there; see decoder_graph.
std::string pages_name(std::int64_t window);
std::string first_page_name(std::int64_t window);
void add_rings(Graph& graph, DecoderStep& step);
void add_pages(Graph& graph, DecoderStep& step);

/// What a layer keeps of its tokens under `name`, in f32, with `fresh` (N, heads, S, D) behind the tokens that it holds: (N, heads, rows,
/// D). What is behind the last does not matter.
Value appended_to_cache(Flow flow, const DecoderStep& step, const DecoderLayer& layer, std::string_view name, Value fresh);
/// The rows of this run's tokens there, (N, S).
Value rows_in_cache(const DecoderStep& step, const DecoderLayer& layer);

}  // namespace rlx
