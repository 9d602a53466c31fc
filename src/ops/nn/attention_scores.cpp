// The scores of attention, and the gradient that computes them again for a few queries at a time.
#include "ops/nn/attention_scores.h"

#include <algorithm>
#include <numeric>

#include "ir/symbols.h"

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
constexpr std::int64_t fewest = 512;    // below, whole scores take less time; of open sizes, which may be small, twice as many at least
constexpr std::int64_t most_parts = 4;  // of queries that see other keys: each is a loop to compile

struct Range {
  Dim begin = 0, end = 0;
  Dim size() const { return end - begin; }
};
struct Part {
  Range queries, keys;
};

// Runs of queries, each with the keys that any of them sees. Query i stands at key i + keys - queries.
std::vector<Part> parts_of(const AttentionScoring& op, const Dim& all_queries, const Dim& all_keys, bool places_are_numbers) {
  if (!op.by_place() || !places_are_numbers || !all_queries.is_static() || !all_keys.is_static())
    return {{{0, all_queries}, {0, all_keys}}};
  const std::int64_t queries = all_queries.value(), keys = all_keys.value();
  std::vector<Part> parts;
  for (std::int64_t p = 0; p < most_parts; ++p) {
    const std::int64_t first = queries * p / most_parts, behind = queries * (p + 1) / most_parts;
    const std::int64_t ahead = keys - queries, end = std::clamp<std::int64_t>(behind + ahead, 1, keys);
    const std::int64_t begin = op.window > 0 ? std::clamp<std::int64_t>(first + ahead - op.window + 1, 0, end - 1) : 0;
    parts.push_back({{first, behind}, {begin, end}});
  }
  return parts;
}

// Whether x, of the rank of the scores, has an element for each place along the axis.
bool moves(Value x, int axis) { return x && !(x.dim(axis) == Dim(1)); }

// `range` of an axis along which x moves.
Value cut(Value x, int axis, const Range& range) {
  return !moves(x, axis) || x.dim(axis) == range.size() ? x : slice_axis(x, axis, range.begin, range.end);
}

// Zeros before and after, up to `size` places along an axis.
Value among(Value x, int axis, const Range& range, const Dim& size) {
  Dims before(x.shape().size(), 0), after = before;
  const auto at = before.size() - static_cast<std::size_t>(-axis);
  before[at] = range.begin;
  after[at] = size - range.end;
  return pad(x, before, after);
}

// The first places along axis -2, of which x may have more.
Value first_rows(Value x, const Dim& rows) { return x.dim(-2) == rows ? x : take(x, iota(x, {rows}, i32, 0), x.rank() - 2); }

// x summed over the axes along which `like` has one place.
Value summed_like(Value x, Value like) {
  Axes axes;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (like.dim(axis) == Dim(1) && !(x.dim(axis) == Dim(1))) axes.push_back(axis);
  return axes.empty() ? x : sum(x, axes, true);
}

class PartGradient {
 public:
  PartGradient(const AttentionScoring& op, const Part& part, const AttentionQueries& queries, const AttentionKeys& keys, Value v, Value dy,
               Value delta)
      : op_(op),
        part_(part),
        runs_(*even_runs(part.queries.size(), block)),
        of_(queries),
        keys_{cut(keys.k, -2, part.keys), cut(keys.place, -1, part.keys)},
        v_(cut(v, -2, part.keys)),
        dy_(dy),
        delta_(delta) {}

  /// Of the part's queries, what they add to its keys and values, and to its bias where there is one: all of its rows, or its only one.
  Values results() const {
    const auto zeros = [](Value x) { return full(x, x.shape(), 0, x.dtype()); };
    Values sums{zeros(keys_.k), zeros(v_)};
    if (of_.bias && !moves(of_.bias, -2)) sums.push_back(full(keys_.k, cut(of_.bias, -1, part_.keys).shape(), 0, keys_.k.dtype()));
    Value row = iota(keys_.k, {runs_.count, runs_.size}, i32, 0) * dim_value(keys_.k, runs_.size, i32);
    row = row + iota(keys_.k, {runs_.count, runs_.size}, i32, 1);
    Values all = scan([&](const Values& carry, const Values& at) { return step(carry, at[0]); }, sums, {row});
    for (std::size_t i = sums.size(); i < all.size(); ++i) all[i] = rows_of(all[i]);
    Values results{all[sums.size()], all[0], all[1]};
    if (of_.bias) results.push_back(moves(of_.bias, -2) ? all.back() : all[2]);
    return results;
  }

 private:
  /// The elements of some queries; those behind the part's last are the last.
  Value at(Value x, Value row) const {
    if (!moves(x, -2)) return x;
    const auto& [begin, end] = part_.queries;
    if (begin == Dim(0) && end == x.dim(-2)) return take(x, row, x.rank() - 2);  // which clips
    return take(x, min(row + begin.value(), scalar(row, static_cast<double>(end.value() - 1), i32)), x.rank() - 2);
  }
  /// The same of what has an element for each key. It is cut behind, as then the step does, which reads it where it lies.
  Value of_keys_at(Value x, Value row) const { return cut(at(x, row), -1, part_.keys); }
  /// (blocks, ..., rows in a block, D) as (..., rows, D).
  Value rows_of(Value x) const {
    const int axis = x.rank() - 3;
    Value side_by_side = move_axis(x, 0, axis);
    Dims shape = side_by_side.shape();
    shape.erase(shape.begin() + axis);
    shape[static_cast<std::size_t>(axis)] = runs_.count * runs_.size;
    return first_rows(reshape(side_by_side, shape), part_.queries.size());
  }

  std::pair<Values, Values> step(const Values& sums, Value row) const {
    Value q = at(of_.q, row), dy = at(dy_, row), delta = at(delta_, row);
    if (const Dim rows = part_.queries.size(); !(runs_.count * runs_.size == rows)) {  // what is behind the last query adds nothing
      Value here = expand_dims(lt(row, dim_value(row, rows, i32)), {-1});
      dy = select(here, dy, like(dy, 0)), delta = select(here, delta, like(delta, 0));
    }
    const AttentionWeights now =
        attention_weights(op_, {q, of_keys_at(of_.mask, row), of_keys_at(of_.bias, row), at(of_.place, row)}, keys_);
    Value biased = now.weights * (attention_by_head(dy, v_, op_.group, v_.rank() - 1) - delta);
    if (now.keep) biased = select(now.keep, biased, like(biased, 0));  // also where values are infinite
    Value scores = biased * op_.scale;
    if (now.capped) scores = scores * (1 - now.capped * now.capped);
    Values next{sums[0] + by_key(scores, q, op_.group), sums[1] + by_key(now.weights, dy, op_.group)};
    Values rows{attention_by_head(scores, keys_.k, op_.group, keys_.k.rank() - 2)};
    if (of_.bias) {
      Value of_bias = summed_like(biased, of_.bias);
      moves(of_.bias, -2) ? rows.push_back(of_bias) : next.push_back(sums[2] + of_bias);
    }
    return {next, rows};
  }

  const AttentionScoring& op_;
  Part part_;
  EvenRuns runs_;
  AttentionQueries of_;
  AttentionKeys keys_;
  Value v_, dy_, delta_;
};

// Adds parts of a gradient to the whole.
void add(Value& all, Value part) { all = all ? all + part : part; }

}  // namespace

bool attention_gradient_fits(const Type& q, const Type& k) {
  const auto many = [](const Type& type) {
    const Dim& size = type.shape[type.shape.size() - 2];
    return size.upper() >= (size.is_static() ? fewest : 2 * fewest) && even_runs(size, block);
  };
  return many(q) && many(k);
}

Values attention_gradient(const AttentionScoring& op, const AttentionQueries& queries, const AttentionKeys& keys, Value v, Value y,
                          Value dy, bool places_are_numbers) {
  const Dim rows = queries.q.dim(-2), columns = keys.k.dim(-2);
  const int row_axis = queries.q.rank() - 2;
  Value delta = sum(y * dy, {-1}, true), dk, dv, of_bias;
  Values dq, bias_rows;
  for (const Part& part : parts_of(op, rows, columns, places_are_numbers)) {
    const Values now = PartGradient(op, part, queries, keys, v, dy, delta).results();
    dq.push_back(now[0]);
    add(dk, among(now[1], -2, part.keys, columns)), add(dv, among(now[2], -2, part.keys, columns));
    if (!queries.bias) continue;
    Value whole = moves(queries.bias, -1) ? among(now[3], -1, part.keys, columns) : now[3];
    if (moves(queries.bias, -2)) bias_rows.push_back(whole);
    else add(of_bias, whole);
  }
  Values gradients{concat(dq, row_axis), dk, dv};
  if (queries.bias) gradients.push_back(of_bias ? of_bias : concat(bias_rows, row_axis));
  return gradients;
}

}  // namespace rlx
