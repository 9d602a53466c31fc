// The scores of attention, and the gradient that computes them again for a few queries at a time.
#include "ops/nn/attention_scores.h"

#include <algorithm>
#include <numeric>

namespace rlx {
namespace {

using Axes = std::vector<std::int64_t>;

Axes first_axes(int count) {
  Axes axes(static_cast<std::size_t>(count));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// (..., H, S, D) as (..., Hkv, G, S, D): the heads that share keys side by side, so that no head is copied.
Value grouped(Value x, const Dim& group) {
  if (group == Dim(1)) return x;
  Dims shape = x.shape();
  const std::size_t heads = shape.size() - 3;
  shape[heads] = *Dim::exact_div(shape[heads], group);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(heads) + 1, group);
  return reshape(x, shape);
}

// The product over all queries that share a head of keys: (..., H, S, K) and (..., H, S, D) give (..., Hkv, K, D).
Value by_key(Value scores, Value rows, const Dim& group) {
  const int batch = rows.rank() - 2;
  Value left = grouped(scores, group), right = grouped(rows, group);
  Axes summed;
  for (int axis = batch; axis + 1 < left.rank(); ++axis) summed.push_back(axis);
  return dot(left, right, summed, summed, first_axes(batch), first_axes(batch));
}

}  // namespace

Value attention_by_head(Value rows, Value shared, const Dim& group, std::int64_t contracted) {
  const int batch = shared.rank() - 2;
  Value many = grouped(rows, group);
  Dims shape = rows.shape();
  Value product = dot(many, shared, {many.rank() - 1}, {contracted}, first_axes(batch), first_axes(batch));
  shape.back() = product.dim(-1);
  return reshape(product, shape);
}

AttentionWeights attention_weights(const AttentionScoring& op, const AttentionQueries& queries, const AttentionKeys& keys) {
  AttentionWeights result{.weights = {}, .keep = queries.mask, .capped = {}};
  Value scores = attention_by_head(queries.q, keys.k, op.group, keys.k.rank() - 1) * op.scale;
  if (op.softcap > 0) {
    result.capped = tanh(scores / op.softcap);
    scores = result.capped * op.softcap;
  }
  if (queries.bias) scores = scores + cast(queries.bias, scores.dtype());
  const auto also = [&](Value condition) { result.keep = result.keep ? logical_and(result.keep, condition) : condition; };
  if (op.by_place()) {
    Value distance = queries.place - keys.place;
    also(ge(distance, scalar(distance, 0, i32)));
    if (op.window > 0) also(lt(distance, scalar(distance, static_cast<double>(op.window), i32)));
  }
  if (result.keep) scores = select(result.keep, scores, like(scores, -infinity));
  result.weights = softmax(scores, -1, result.keep || queries.bias);
  return result;
}

namespace {

constexpr std::int64_t block = 128;     // queries whose scores are in memory at a time
constexpr std::int64_t fewest = 512;    // below, whole scores take less time
constexpr std::int64_t most_parts = 4;  // of queries that see other keys: each is a loop to compile

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
struct Part {
  Range queries, keys;
};

/// Runs of queries, each with the keys that any of them sees. Query i stands at key i + keys - queries.
std::vector<Part> parts_of(const AttentionScoring& op, std::int64_t queries, std::int64_t keys, bool places_are_numbers) {
  if (!op.by_place() || !places_are_numbers) return {{{0, queries}, {0, keys}}};
  std::vector<Part> parts;
  for (std::int64_t p = 0; p < most_parts; ++p) {
    const Range rows{queries * p / most_parts, queries * (p + 1) / most_parts};
    const std::int64_t ahead = keys - queries, end = std::clamp<std::int64_t>(rows.end + ahead, 1, keys);
    const std::int64_t begin = op.window > 0 ? std::clamp<std::int64_t>(rows.begin + ahead - op.window + 1, 0, end - 1) : 0;
    parts.push_back({rows, {begin, end}});
  }
  return parts;
}

// `range` of an axis that has more than one place.
Value cut(Value x, std::int64_t axis, const Range& range) {
  return !x || x.dim(static_cast<int>(axis)) == Dim(1) ? x : slice_axis(x, axis, range.begin, range.end);
}

class PartGradient {
 public:
  PartGradient(const AttentionScoring& op, const Part& part, const AttentionQueries& queries, const AttentionKeys& keys, Value v, Value dy,
               Value delta)
      : op_(op), rows_(part.queries.size()), keys_{cut(keys.k, -2, part.keys), cut(keys.place, -1, part.keys)}, v_(cut(v, -2, part.keys)) {
    for (Value x : {queries.q, cut(queries.mask, -1, part.keys), queries.place, dy, delta}) operands_.push_back(cut(x, -2, part.queries));
  }

  /// Of the part's queries, and what they add to its keys and values.
  Values results() const {
    Values moving;
    for (Value x : operands_)
      if (moves(x)) moving.push_back(in_blocks(x));
    const auto zeros = [](Value x) { return full(x, x.shape(), 0, x.dtype()); };
    Values sums = scan([&](const Values& carry, const Values& at) { return step(carry, at); }, {zeros(keys_.k), zeros(v_)}, moving);
    return {rows_of(sums[2]), sums[0], sums[1]};
  }

 private:
  static bool moves(Value x) { return x && !(x.dim(-2) == Dim(1)); }
  std::int64_t blocks() const { return (rows_ + block - 1) / block; }
  std::int64_t rows_in_block() const { return (rows_ + blocks() - 1) / blocks(); }

  /// (..., rows, D) as (blocks, ..., rows in a block, D), padded with zeros, which add none.
  Value in_blocks(Value x) const {
    const std::size_t axis = x.shape().size() - 2;
    Dims more(x.shape().size(), 0), shape = x.shape();
    more[axis] = blocks() * rows_in_block() - rows_;
    shape[axis] = rows_in_block();
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), Dim(blocks()));
    return move_axis(reshape(pad(x, Dims(more.size(), 0), more), shape), static_cast<std::int64_t>(axis), 0);
  }
  Value rows_of(Value x) const {
    const int axis = x.rank() - 3;
    Value side_by_side = move_axis(x, 0, axis);
    Dims shape = side_by_side.shape();
    shape.erase(shape.begin() + axis);
    shape[static_cast<std::size_t>(axis)] = blocks() * rows_in_block();
    return slice_axis(reshape(side_by_side, shape), axis, 0, rows_);
  }

  std::pair<Values, Values> step(const Values& sums, const Values& at) const {
    Values x = operands_;
    auto next = at.begin();
    for (Value& operand : x)
      if (moves(operand)) operand = *next++;
    Value q = x[0], dy = x[3], delta = x[4];
    const AttentionWeights now = attention_weights(op_, {.q = q, .mask = x[1], .bias = {}, .place = x[2]}, keys_);
    Value scores = now.weights * (attention_by_head(dy, v_, op_.group, v_.rank() - 1) - delta) * op_.scale;
    if (now.capped) scores = scores * (1 - now.capped * now.capped);
    if (now.keep) scores = select(now.keep, scores, like(scores, 0));  // also where values are infinite
    return {{sums[0] + by_key(scores, q, op_.group), sums[1] + by_key(now.weights, dy, op_.group)},
            {attention_by_head(scores, keys_.k, op_.group, keys_.k.rank() - 2)}};
  }

  const AttentionScoring& op_;
  std::int64_t rows_;
  AttentionKeys keys_;
  Value v_;
  Values operands_;  // q, mask, place, dy, delta
};

// Zeros before and after, up to `size` places along axis -2.
Value among(Value x, const Range& range, std::int64_t size) {
  Dims before(x.shape().size(), 0), after = before;
  before[before.size() - 2] = range.begin;
  after[after.size() - 2] = size - range.end;
  return pad(x, before, after);
}

}  // namespace

bool attention_gradient_fits(const Type& q, const Type& k) {
  const auto many = [](const Type& type) {
    const Dim& size = type.shape[type.shape.size() - 2];
    return size.is_static() && size.value() >= fewest;
  };
  return many(q) && many(k);
}

Values attention_gradient(const AttentionScoring& op, const AttentionQueries& queries, const AttentionKeys& keys, Value v, Value y,
                          Value dy, bool places_are_numbers) {
  const std::int64_t rows = queries.q.dim(-2).value(), columns = keys.k.dim(-2).value();
  Value delta = sum(y * dy, {-1}, true), dk, dv;
  Values dq;
  for (const Part& part : parts_of(op, rows, columns, places_are_numbers)) {
    const Values now = PartGradient(op, part, queries, keys, v, dy, delta).results();
    dq.push_back(now[0]);
    const auto add = [&](Value& all, Value more) { all = all ? all + among(more, part.keys, columns) : among(more, part.keys, columns); };
    add(dk, now[1]), add(dv, now[2]);
  }
  return {concat(dq, queries.q.rank() - 2), dk, dv};
}

}  // namespace rlx
