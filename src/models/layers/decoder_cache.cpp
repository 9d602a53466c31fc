// What a decoder's layers keep of each token: states, in one of several types of numbers, whole, in pages, or in rings of pages.
#include "models/layers/decoder_cache.h"

#include <charconv>

#include "rlx/ops.h"

namespace rlx {
namespace {

/// The rows of each sequence, (N, heads, P * page_tokens, D), from pages that now hold `fresh` (N, heads, S, D) too.
Value kept_in_pages(Flow flow, const TokenPages& pages, std::string_view name, Value fresh) {
  const std::int64_t heads = fresh.dim(1).value(), size = fresh.dim(3).value();
  const Dim n = pages.table.dim(0), count = pages.table.dim(1);
  Value cache = flow.state(name, {pages.count, heads, page_tokens, size}, fresh.dtype());
  Value rows = reshape(transpose(fresh, {0, 2, 1, 3}), {pages.places.dim(0), heads, size});
  cache = scatter(cache, pages.places, rows, {{1, 2}, {0, 2}, {0, 2}});
  flow.keep(name, cache);
  Value own = gather(cache, reshape(pages.table, {n, count, 1}), {{2, 3, 4}, {0}, {0}}, {1, heads, page_tokens, size});
  return reshape(transpose(own, {0, 2, 1, 3, 4}), {n, heads, count * page_tokens, size});
}

Value number(const DecoderStep& step, std::int64_t value) { return scalar(step.positions, static_cast<double>(value), i32); }

/// Null where each sequence has a cache of its own, of its whole context.
const TokenPages* pages_of(const DecoderStep& step, const DecoderLayer& layer) {
  const auto own = step.pages.find(layer.window), shared = own == step.pages.end() ? step.pages.find(0) : own;
  return shared == step.pages.end() ? nullptr : &shared->second;
}

/// As pairs: of each token the page, and the row in it.
Value places_of(const DecoderStep& step, Value pages, Value rows) {
  const Dim tokens = step.positions.dim(0) * step.positions.dim(1);
  return concat({reshape(pages, {tokens, 1}), reshape(rem(rows, number(step, page_tokens)), {tokens, 1})}, 1);
}

/// The state `name` (N, heads, capacity, D) with `fresh` (N, heads, S, D) behind the tokens that it holds.
Value kept_whole(Flow flow, const DecoderStep& step, std::string_view name, Value fresh) {
  const std::int64_t n = step.options.sequences;
  Value cache = flow.state(name, {n, fresh.dim(1), step.options.capacity, fresh.dim(3)}, fresh.dtype());
  Value zero = scalar(fresh, 0, i32);
  for (std::int64_t i = 0; i < n; ++i) {
    Value at = reshape(slice_axis(step.past, 0, i, i + 1), {});
    cache = dynamic_update(cache, slice_axis(fresh, 0, i, i + 1), {scalar(fresh, static_cast<double>(i), i32), zero, at, zero});
  }
  flow.keep(name, cache);
  return cache;
}

Value kept(Flow flow, const DecoderStep& step, const DecoderLayer& layer, std::string_view name, Value fresh) {
  const TokenPages* pages = pages_of(step, layer);
  return pages ? kept_in_pages(flow, *pages, name, fresh) : kept_whole(flow, step, name, fresh);
}

/// Features of a row that share a scale: 32, as in blocks of Q8_0, or what divides the row.
std::int64_t features_of_scale(std::int64_t features) { return features % 32 == 0 ? 32 : features % 16 == 0 ? 16 : features; }

/// The same with rows of int8 numbers and, under another name, their scales.
Value kept_in_8_bits(Flow flow, const DecoderStep& step, const DecoderLayer& layer, std::string_view name, Value fresh) {
  const std::int64_t features = fresh.dim(3).value(), share = features_of_scale(features);
  Dims runs = fresh.shape();
  runs.back() = features / share;
  const Dims scale_shape = runs;
  runs.push_back(share);
  Value numbers = reshape(fresh, runs);
  Value scales = reduce_max(abs(numbers), {-1}, true) * (1.0 / 127);
  Value codes = kept(flow, step, layer, name, reshape(quantize(numbers, scales, {}, i8), fresh.shape()));  // 0 / 0 gives 0
  Value of_run = kept(flow, step, layer, fmt::format("{}.scales", name), reshape(scales, scale_shape));
  Dims many = of_run.shape();
  many.push_back(1);
  of_run = reshape(of_run, many);
  many.back() = share;
  return cast(codes, f32) * reshape(broadcast_to(of_run, many), codes.shape());
}

DType element_of(CacheType type) { return type == CacheType::f16 ? f16 : type == CacheType::bf16 ? bf16 : f32; }

}  // namespace

std::int64_t window_pages(const DecoderGraphOptions& options, std::int64_t window) {
  if (window == 0 || options.sequences > 1) return 0;
  // A run of `chunk` tokens sees window - 1 before its first, and these may begin anywhere in a page. (Sums of two sizes that fit an i32.)
  const std::int64_t tokens = window + options.chunk - 1, pages = (tokens + page_tokens - 2) / page_tokens + 1;
  return pages * page_tokens < options.capacity ? pages : 0;
}

std::set<std::int64_t> windows_in_pages(const DecoderConfig& config, const DecoderGraphOptions& options) {
  std::set<std::int64_t> windows;
  for (const DecoderLayer& layer : config.layers) {
    if (!is_attention(layer.mixer)) continue;
    if (window_pages(options, layer.window) > 0) windows.insert(layer.window);
    else if (options.pages > 0) windows.insert(0);
  }
  return windows;
}

std::int64_t window_of_state(const DecoderConfig& config, std::string_view state) {
  std::size_t layer = 0;
  const std::string_view number = state.substr(state.find('.') + 1);
  std::from_chars(number.data(), number.data() + number.size(), layer);
  return config.layers.at(layer).window;
}

std::string ring_name(std::int64_t window) { return fmt::format("ring_{}", window); }
std::string pages_name(std::int64_t window) { return window == 0 ? "pages" : fmt::format("pages_{}", window); }
std::string first_page_name(std::int64_t window) { return fmt::format("first_{}", pages_name(window)); }

void add_rings(Graph& graph, DecoderStep& step) {
  const Value size = number(step, page_tokens);
  for (const std::int64_t window : windows_in_pages(step.config, step.options)) {
    const std::int64_t count = window_pages(step.options, window);
    Value table = graph.input(ring_name(window), {1, count}, i32);
    Value first = max(step.past - number(step, window - 1), number(step, 0));
    Value pages = rem(step.positions / size, number(step, count));
    step.pages[window] = {count, table, places_of(step, pages, step.positions), step.positions - reshape(first - rem(first, size), {1, 1})};
  }
}

void add_pages(Graph& graph, DecoderStep& step) {
  const Dim n = step.positions.dim(0);
  const Value size = number(step, page_tokens);
  for (const std::int64_t window : windows_in_pages(step.config, step.options)) {
    const std::int64_t most = window == 0 ? (step.options.capacity + page_tokens - 1) / page_tokens : window_pages(step.options, window);
    Value table = graph.input(pages_name(window), {n, Dim::symbol(window == 0 ? "P" : fmt::format("P{}", window), most)}, i32);
    Value rows = step.positions;
    if (window > 0) rows = rows - reshape(graph.input(first_page_name(window), {n}, i32) * size, {n, 1});
    step.pages[window] = {step.options.pages, table, places_of(step, take_along_axis(table, rows / size, 1), rows), rows};
  }
}

Value rows_in_cache(const DecoderStep& step, const DecoderLayer& layer) {
  const TokenPages* pages = pages_of(step, layer);
  return pages ? pages->rows : step.positions;
}

Value appended_to_cache(Flow flow, const DecoderStep& step, const DecoderLayer& layer, std::string_view name, Value fresh) {
  if (step.options.cache == CacheType::q8) return kept_in_8_bits(flow, step, layer, name, fresh);
  return cast(kept(flow, step, layer, name, cast(fresh, element_of(step.options.cache))), f32);
}

}  // namespace rlx
