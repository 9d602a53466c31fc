// What a decoder's layers keep of each token: states, in one of several types of numbers, whole, in pages, or in rings of pages.
#include "models/decoder_cache.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// A cache in pages.
struct Pages {
  std::int64_t count;
  Value places;  // (N * S, 2): the page that takes each token, and the row in it
  Value table;   // (N, P): the pages of each sequence, in the order of its tokens
};

/// The rows of each sequence, (N, heads, P * page_tokens, D), from pages that now hold `fresh` (N, heads, S, D) too.
Value kept_in_pages(Flow flow, const Pages& pages, std::string_view name, Value fresh) {
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

/// The pages of a layer that keeps a window only.
Pages ring(const DecoderStep& step, std::int64_t window, Value table) {
  const std::int64_t count = ring_pages(step.options, window);
  Value token = reshape(step.positions, {step.positions.dim(1), 1}), size = number(step, page_tokens);
  return {count, concat({rem(token / size, number(step, count)), rem(token, size)}, 1), table};
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
  if (step.pages) return kept_in_pages(flow, {step.options.pages, step.places, step.pages}, name, fresh);
  const auto table = step.rings.find(layer.window);
  if (table == step.rings.end()) return kept_whole(flow, step, name, fresh);
  return kept_in_pages(flow, ring(step, layer.window, table->second), name, fresh);
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

std::int64_t ring_pages(const DecoderGraphOptions& options, std::int64_t window) {
  if (window == 0 || options.pages > 0 || options.sequences > 1) return 0;
  // A run of `chunk` tokens sees window - 1 before its first, and these may begin anywhere in a page. (Sums of two sizes that fit an i32.)
  const std::int64_t tokens = window + options.chunk - 1, pages = (tokens + page_tokens - 2) / page_tokens + 1;
  return pages * page_tokens < options.capacity ? pages : 0;
}

std::string ring_name(std::int64_t window) { return fmt::format("ring_{}", window); }

Value rows_in_cache(const DecoderStep& step, const DecoderLayer& layer) {
  if (!step.rings.contains(layer.window)) return step.positions;
  Value first = max(step.past - number(step, layer.window - 1), number(step, 0));
  return step.positions - reshape(first - rem(first, number(step, page_tokens)), {1, 1});
}

Value appended_to_cache(Flow flow, const DecoderStep& step, const DecoderLayer& layer, std::string_view name, Value fresh) {
  if (step.options.cache == CacheType::q8) return kept_in_8_bits(flow, step, layer, name, fresh);
  return cast(kept(flow, step, layer, name, cast(fresh, element_of(step.options.cache))), f32);
}

}  // namespace rlx
