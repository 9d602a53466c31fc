// Looking up rows of a table: one for each id, or the sum, mean or maximum of a bag of them.
#include <limits>
#include <numeric>

#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

void check_ids(std::string_view op, Value table, Value ids) {
  if (table.rank() < 1 || !is_integer(ids.dtype()))
    fail("rlx.{}: table {}, ids {} (allowed: table [V, ...], ids of integers)", op, table.type().to_string(), ids.type().to_string());
}

struct Embedding {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "embedding";
  static constexpr std::string_view formula =
      "row ids[...] of table (V, D); ids are clamped to 0..V-1; the row `padding_id` takes no gradient (negative: there is none)";
  static constexpr std::array<int, 1> integer_operands{1};
  std::int64_t padding_id = -1;
  static auto fields() { return Fields<&Embedding::padding_id>{}; }
  static Value body(const Embedding& op, Value table, Value ids) {
    check_ids(name, table, ids);
    Value rows = take(table, ids, 0);
    if (op.padding_id < 0) return rows;
    Dims shape = ids.shape();
    shape.resize(rows.shape().size(), 1);
    Value padding = eq(cast(ids, i64), scalar(ids, static_cast<double>(op.padding_id), i64));
    return select(reshape(padding, shape), stop_gradient(rows), rows);
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {6, 4}}}, {{i32, {2, 3}}, 0, 5}}, {}},
            {{{{bf16, {6, 4}}}, {{i64, {5}}, 0, 5}}, {}},
            {{{{f32, {6, 4}}}, {{i32, {}}, 0, 5}}, {}},
            {{{{f32, {3, 4}}}, {{i32, {2, 5}}, 0, 2}}, attrs_of(Embedding{1}), 0, false},
            {{{{f32, {3, 4}}}, {{i32, {2, 5}}, 0, 2}}, attrs_of(Embedding{7})}};
  }
};
const Op<Embedding> embedding_op;

struct EmbeddingBag {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "embedding_bag";
  static constexpr std::string_view formula =
      "bag b holds the rows of table (V, D) at ids[offsets[b]] .. ids[offsets[b + 1] - 1]: their sum (with weights, operand 3, when there "
      "are any), mean or largest elements; 0 for an empty bag";
  static constexpr std::array<int, 2> integer_operands{1, 2};
  BagMode mode = BagMode::mean;
  bool has_weights = false;
  static auto fields() { return Fields<&EmbeddingBag::mode, &EmbeddingBag::has_weights>{}; }

  static void check(const EmbeddingBag& op, In x) {
    detail::check_arity(name, 3u + op.has_weights, x.size());
    check_ids(name, x[0], x[1]);
    if (x[1].rank() != 1 || x[2].rank() != 1 || !is_integer(x[2].dtype()))
      fail("rlx.embedding_bag: ids {}, offsets {} (allowed: integers of rank 1)", x[1].type().to_string(), x[2].type().to_string());
    check_float(name, x[0]);
    if (op.has_weights && (op.mode != BagMode::sum || !(x[3].shape() == x[1].shape())))
      fail("rlx.embedding_bag: weights {} with mode '{}' for ids {} (allowed: one for each id, in mode 'sum')", x[3].type().to_string(),
           enum_words(op.mode)[static_cast<std::size_t>(op.mode)], x[1].type().to_string());
  }
  // The number of the bag that each id lies in, (n, 1): how many bags have started, less one.
  static Value bags(Value ids, Value offsets) {
    Value place = iota(ids, {ids.dim(0), 1}, i64, 0);
    Value started = le(reshape(cast(offsets, i64), {1, offsets.dim(0)}), place);
    return sum(cast(started, i64), {1}, true) - 1;
  }
  static Value body(const EmbeddingBag& op, In x) {
    check(op, x);
    Value rows = widen(take(x[0], x[1], 0)), bag = bags(x[1], x[2]);
    Dims shape = rows.shape(), column(shape.size(), 1);
    shape[0] = column[0] = x[2].dim(0);
    GatherNumbers numbers{.offset_dims = std::vector<std::int64_t>(shape.size() - 1), .collapsed_slice_dims = {0}, .start_index_map = {0}};
    std::iota(numbers.offset_dims.begin(), numbers.offset_dims.end(), 1);
    auto gathered = [&](double start, Value updates, ScatterKind kind) {
      return scatter(full(rows, shape, start, rows.dtype()), bag, updates, numbers, kind, IndexMode::fill);
    };
    if (op.has_weights) {
      Dims weight_shape(shape.size(), 1);
      weight_shape[0] = x[1].dim(0);
      rows = rows * reshape(widen(x[3]), weight_shape);
    }
    if (op.mode == BagMode::sum) return cast(gathered(0, rows, ScatterKind::add), x[0].dtype());
    const GatherNumbers single{.offset_dims = {}, .collapsed_slice_dims = {0}, .start_index_map = {0}};
    Value count = reshape(
        scatter(full(rows, {x[2].dim(0)}, 0, i32), bag, full(rows, {x[1].dim(0)}, 1, i32), single, ScatterKind::add, IndexMode::fill),
        column);
    Value present = gt(count, scalar(count, 0, i32));
    if (op.mode == BagMode::mean)
      return cast(gathered(0, rows, ScatterKind::add) / cast(max(count, scalar(count, 1, i32)), rows.dtype()), x[0].dtype());
    Value largest = gathered(-std::numeric_limits<double>::infinity(), rows, ScatterKind::max);
    return cast(select(present, largest, like(rows, 0)), x[0].dtype());
  }
  static std::vector<Sample> samples() {
    const Sample::Operand table{{f32, {6, 4}}}, ids{{i32, {7}}, 0, 5}, offsets{{i32, {3}}, 0, 6}, weights{{f32, {7}}};
    return {{{table, ids, offsets}, attrs_of(EmbeddingBag{BagMode::sum, false}), 1e-6},
            {{table, ids, offsets, weights}, attrs_of(EmbeddingBag{BagMode::sum, true}), 1e-6},
            {{table, ids, offsets}, attrs_of(EmbeddingBag{BagMode::mean, false}), 1e-6},
            {{table, ids, offsets}, attrs_of(EmbeddingBag{BagMode::max, false})},
            {{{{bf16, {5, 2, 3}}}, {{i64, {4}}, 0, 4}, {{i64, {2}}, 0, 3}}, attrs_of(EmbeddingBag{BagMode::mean, false})}};
  }
};
const Op<EmbeddingBag> embedding_bag_op;

}  // namespace

/// Rows of table (V, D) at ids (integers of any shape): (ids..., D). Ids outside are clamped. The row `padding_id`, when given, is read
/// like every other, but no gradient flows into it. Throws Error for ids that are no integers.
Value embedding(Operand table, Operand ids, std::optional<std::int64_t> padding_id /*= {}*/) {
  if (padding_id && *padding_id < 0) fail("rlx.embedding: padding_id {} (allowed: >= 0)", *padding_id);
  return embedding_op({padding_id.value_or(-1)}, table, ids);
}

/// The sum, mean or largest elements of the rows of table (V, ...) in each bag: bag b of (B, ...) holds ids[offsets[b]] up to
/// ids[offsets[b + 1] - 1], the last bag all that is left; ids [n] and offsets [B] are integers, offsets do not decrease. Ids before
/// offsets[0] belong to no bag, an empty bag gives 0. weights [n], in mode sum, multiply the rows; null: 1. Ids outside are clamped.
Value embedding_bag(Operand table, Operand ids, Operand offsets, BagMode mode /*= BagMode::mean*/, Operand weights /*= {}*/) {
  Values operands{table, ids, offsets};
  if (weights) operands.push_back(weights);
  return embedding_bag_op.of({mode, static_cast<bool>(weights)}, operands);
}

}  // namespace rlx
