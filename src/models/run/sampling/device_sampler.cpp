#include "models/run/sampling/device_sampler.h"

#include <cmath>
#include <limits>

#include "rlx/ops.h"

namespace rlx::sampling {
namespace {

constexpr std::int64_t most_rows = 512;
constexpr double beyond = std::numeric_limits<double>::infinity();

/// How candidates are ordered before they are cut off; a positive number: so many of them, the likeliest first.
constexpr std::int64_t greedy = -2, by_id = -1, all_by_score = 0;

bool is_greedy(const SamplingOptions& options) { return options.temperature == 0; }

std::int64_t order_of(const SamplingOptions& options, std::int64_t vocabulary) {
  if (is_greedy(options)) return greedy;
  if (options.top_k > 0 && options.top_k < vocabulary) return options.top_k;
  return options.top_p < 1 ? all_by_score : by_id;
}

bool changes_scores(const SamplingOptions& o) {
  const bool penalizes = o.repetition_penalty != 1 || o.frequency_penalty != 0 || o.presence_penalty != 0 || o.dry_multiplier != 0;
  return penalizes || !o.logit_bias.empty();
}

bool cuts_otherwise(const SamplingOptions& o) {
  constexpr double coldest = 1e-6;  // a Sampler takes the best below it
  return o.typical_p < 1 || o.xtc_probability > 0 || o.mirostat != 0 || o.temperature < coldest;
}

/// Of (rows, n) sums along rows the last ones: (rows, 1).
Value last_of(Value sums) { return slice_axis(sums, 1, sums.dim(1).value() - 1, sums.dim(1).value()); }

/// In each row the first position at which the sum of the weights passes `unit` of their total; where rounding lets none, the last with a
/// weight.
Value drawn(Value weights, Value unit) {
  Value sums = cumsum(weights, 1), rank = iota(weights, weights.shape(), i32, 1);
  Value position = sum(cast(le(sums, last_of(sums) * unit), i32), {1}, true);
  Value last = reduce_max(select(gt(weights, 0), rank, scalar(rank, 0, i32)), {1}, true);
  return min(position, last);
}

/// The numbers of a draw, in this order.
constexpr std::int64_t unit = 0, temperature = 1, top_p = 2, least = 3, count = 4;

/// As Sampler cuts and draws, in each row. `best`: the highest of its logits.
Value sampled(Value logits, Value best, std::int64_t order, Value numbers) {
  const auto number = [&](std::int64_t which) { return slice_axis(numbers, 1, which, which + 1); };
  const auto difference = [&](Value scores) { return cast(scores, numbers.dtype()) - cast(best, numbers.dtype()); };
  Value ids = iota(logits, logits.shape(), i32, 1), scores = logits;
  if (order == all_by_score) {
    const Values sorted = sort({scores, ids}, 1, 1, true);
    scores = sorted[0], ids = sorted[1];
  } else if (order > 0) {
    const Values found = top_k(scores, order, 1);
    scores = found[0], ids = cast(found[1], i32);
  }
  if (order != by_id) {
    Value sums = cumsum(exp(difference(scores)), 1), before = sums - exp(difference(scores));
    Value kept = lt(before, last_of(sums) * number(top_p));
    const Values sorted = sort({ids, select(kept, scores, scalar(scores, -beyond, f32))}, 1, 1, false);  // it draws in their order
    ids = sorted[0], scores = sorted[1];
  }
  Value kept = ge(difference(scores), number(least));
  Value cooled = cast(cast(difference(scores) / number(temperature), f32), numbers.dtype());
  return take_along_axis(ids, drawn(select(kept, exp(cooled), scalar(cooled, 0, cooled.dtype())), number(unit)), 1);
}

/// The tokens, -1 for logits that are refused.
Graph graph_of(std::int64_t vocabulary, std::int64_t order, DType wide) {
  Graph graph("sampling");
  const Dim wanted = Dim::symbol("W", most_rows);
  Value all = graph.input("logits", {1, Dim::symbol("R", most_rows), vocabulary}, f32), rows = graph.input("rows", {wanted}, i32);
  Value logits = reshape(take(all, rows, 1), {wanted, vocabulary});
  Value best = reduce_max(logits, {1}, true);  // NaN wins
  Value usable = logical_and(gt(best, -beyond), lt(best, beyond));
  Value id = order == greedy ? argmax(logits, 1, true) : sampled(logits, best, order, graph.input("numbers", {wanted, count}, wide));
  graph.output("ids", select(usable, cast(id, i32), scalar(rows, -1, i32)));
  return graph;
}

}  // namespace

bool DeviceSampler::can_choose(const SamplingOptions& options, const Array& logits) {
  if (logits.device() == Device::cpu() || logits.rank() != 3 || logits.shape()[0] != 1 || logits.shape()[1] > most_rows) return false;
  if (changes_scores(options) || options.log_probabilities >= 0 || options.temperature_range > 0) return false;
  return is_greedy(options) || !cuts_otherwise(options);
}

const Executable& DeviceSampler::compiled(const SamplingOptions& options) {
  const std::int64_t order = order_of(options, vocabulary_);
  wide_ = session_.device().multiplies(f64) ? f64 : f32;
  const auto known = compiled_.find(order);
  if (known != compiled_.end()) return known->second;
  return compiled_.emplace(order, session_.compile(graph_of(vocabulary_, order, wide_))).first->second;
}

std::vector<std::optional<std::int32_t>> DeviceSampler::choose(const SamplingOptions& options, const Array& logits,
                                                               std::span<const Draw> draws) {
  const Executable& executable = compiled(options);
  const auto n = static_cast<std::int64_t>(draws.size());
  Array rows(i32, {n}), numbers(wide_, {n, count});
  for (std::int64_t i = 0; i < n; ++i) {
    const Draw& draw = draws[static_cast<std::size_t>(i)];
    rows.set_int(i, draw.row);
    numbers.set_double(count * i + unit, draw.unit), numbers.set_double(count * i + temperature, options.temperature);
    numbers.set_double(count * i + top_p, options.top_p), numbers.set_double(count * i + least, std::log(options.min_p));
  }
  std::map<std::string, Feed> feeds{{"logits", logits}, {"rows", rows}};
  if (!is_greedy(options)) feeds.emplace("numbers", numbers);
  const Array ids = executable.run(feeds).at("ids");
  std::vector<std::optional<std::int32_t>> chosen;
  for (const std::int32_t id : ids.values<std::int32_t>()) chosen.push_back(id < 0 ? std::nullopt : std::optional(id));
  return chosen;
}

}  // namespace rlx::sampling
