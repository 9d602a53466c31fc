// What a decoder's layers keep of each token: states, in one of several types of numbers, whole or in pages.
#include "models/decoder_step.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// The rows of each token's sequence, (N, heads, P * page_tokens, D), from pages that now hold `fresh` (N, heads, 1, D) too.
Value kept_in_pages(Flow flow, const DecoderStep& step, std::string_view name, Value fresh) {
  const std::int64_t heads = fresh.dim(1).value(), size = fresh.dim(3).value();
  Value cache = flow.state(name, {step.options.pages, heads, page_tokens, size}, fresh.dtype());
  cache = scatter(cache, step.places, reshape(fresh, {fresh.dim(0), heads, size}), {{1, 2}, {0, 2}, {0, 2}});
  flow.keep(name, cache);
  Value own =
      gather(cache, reshape(step.pages, {fresh.dim(0), step.pages.dim(1), 1}), {{2, 3, 4}, {0}, {0}}, {1, heads, page_tokens, size});
  return reshape(transpose(own, {0, 2, 1, 3, 4}), {fresh.dim(0), heads, step.pages.dim(1) * page_tokens, size});
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

Value kept(Flow flow, const DecoderStep& step, std::string_view name, Value fresh) {
  return step.pages ? kept_in_pages(flow, step, name, fresh) : kept_whole(flow, step, name, fresh);
}

/// Features of a row that share a scale: 32, as in blocks of Q8_0, or what divides the row.
std::int64_t features_of_scale(std::int64_t features) { return features % 32 == 0 ? 32 : features % 16 == 0 ? 16 : features; }

/// The same with rows of int8 numbers and, under another name, their scales.
Value kept_in_8_bits(Flow flow, const DecoderStep& step, std::string_view name, Value fresh) {
  const std::int64_t features = fresh.dim(3).value(), share = features_of_scale(features);
  Dims shape = fresh.shape(), runs = shape;
  runs.back() = features / share;
  const Dims scale_shape = runs;
  runs.push_back(share);
  Value numbers = reshape(fresh, runs);
  Value scales = reduce_max(abs(numbers), {-1}, true) * (1.0 / 127);
  Value codes = kept(flow, step, name, reshape(quantize(numbers, scales, {}, i8), shape));  // 0 / 0 gives 0
  Value of_run = kept(flow, step, fmt::format("{}.scales", name), reshape(scales, scale_shape));
  Dims many = of_run.shape();
  many.push_back(1);
  of_run = reshape(of_run, many);
  many.back() = share;
  return cast(codes, f32) * reshape(broadcast_to(of_run, many), codes.shape());
}

DType element_of(CacheType type) { return type == CacheType::f16 ? f16 : type == CacheType::bf16 ? bf16 : f32; }

}  // namespace

Value appended_to_cache(Flow flow, const DecoderStep& step, std::string_view name, Value fresh) {
  if (step.options.cache == CacheType::q8) return kept_in_8_bits(flow, step, name, fresh);
  return cast(kept(flow, step, name, cast(fresh, element_of(step.options.cache))), f32);
}

}  // namespace rlx
