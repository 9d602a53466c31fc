// Products of rows that lie in groups, one behind the other, each with the matrix of its group.
#include "ops/wide.h"

namespace rlx {
namespace {

// How many of `ends` are not above each position: the number of the group, or of the group's block, that it lies in.
Value count_passed(Value positions, Value ends) { return sum(cast(ge(expand_dims(positions, {-1}), ends), i64), {-1}); }

// v where `there` holds for its row, else 0.
Value only_there(Value there, Value v) { return select(expand_dims(there, {-1}), v, like(v, 0)); }

// The positions, those behind the last of an axis at the last.
Value within(Value positions, const Dim& size) { return min(positions, dim_value(positions, size, i64) - 1); }

// Rows as blocks of which each lies in one group, with rows of zeros behind the last of a group. A product is then one of blocks, and what
// it reads of the matrices, and its derivative by them, are as many matrices as there are blocks, not rows.
class RowBlocks {
 public:
  RowBlocks(Value group_sizes, const Dim& rows) : rows_(rows), groups_(group_sizes.dim(0)), length_(block_length(rows, groups_)) {
    const Value most = dim_value(group_sizes, rows, i64), sizes = min(max(cast(group_sizes, i64), like(most, 0)), most);
    starts_ = min(cumsum(sizes, 0, true), most);
    ends_ = min(cumsum(sizes, 0), most);
    const Value blocks = (ends_ - starts_ + static_cast<double>(length_ - 1)) / length();
    first_blocks_ = cumsum(blocks, 0, true);
    block_ends_ = cumsum(blocks, 0);
  }

  // (R, C) as (blocks, length, C).
  Value split(Value x) const {
    const Value slot = iota(x, {count() * length_}, i64), group = within(count_passed(slot / length(), block_ends_), groups_);
    const Value row = take(starts_, group) + slot - take(first_blocks_, group) * length();
    return reshape(only_there(lt(row, take(ends_, group)), take(x, within(row, rows_))), {count(), length_, x.dim(1)});
  }
  // The matrix of each block.
  Value matrices(Value w) const { return take(w, within(count_passed(iota(w, {count()}, i64), block_ends_), groups_)); }
  // The rows again; zeros where a row is in no group.
  Value join(Value y) const {
    const Value row = iota(y, {rows_}, i64), passed = count_passed(row, ends_), group = within(passed, groups_);
    const Value slot = within(take(first_blocks_, group) * length() + row - take(starts_, group), count() * length_);
    return only_there(lt(passed, dim_value(y, groups_, i64)), take(reshape(y, {count() * length_, y.dim(2)}), slot));
  }

 private:
  // About the rows of a group, where they are known: shorter blocks read matrices more often, longer ones hold more rows that are none.
  static std::int64_t block_length(const Dim& rows, const Dim& groups) {
    std::int64_t length = 1;
    if (rows.is_static() && groups.is_static())
      while (length < 128 && length < rows.value() / groups.value()) length *= 2;
    return length;
  }
  double length() const { return static_cast<double>(length_); }
  // Every group but those of whole blocks adds one.
  Dim count() const { return length_ == 1 ? rows_ : groups_ + rows_.value() / length_; }

  Dim rows_, groups_;
  std::int64_t length_;
  Value starts_, ends_, first_blocks_, block_ends_;
};

struct RaggedDot {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "ragged_dot";
  static constexpr std::string_view formula =
      "the rows of x (M, K) in groups of group_sizes (G), each times the matrix of its group of w (G, K, N); 0 for rows behind the last "
      "group";
  static constexpr std::array<int, 1> integer_operands{2};
  static auto fields() { return Fields<>{}; }
  static Value body(const RaggedDot&, Value x, Value w, Value group_sizes) {
    if (x.rank() != 2 || w.rank() != 3 || group_sizes.rank() != 1 || !is_integer(group_sizes.dtype()) || !(x.dim(1) == w.dim(1)) ||
        !(w.dim(0) == group_sizes.dim(0)))
      fail("rlx.ragged_dot: x {}, w {}, group_sizes {} do not fit (allowed: x [M, K], w [G, K, N], group_sizes [G] of integers)",
           x.type().to_string(), w.type().to_string(), group_sizes.type().to_string());
    if (x.dim(0) == Dim(0) || w.dim(0) == Dim(0)) return full(x, {x.dim(0), w.dim(2)}, 0, x.dtype());
    const RowBlocks rows(group_sizes, x.dim(0));
    return rows.join(dot(rows.split(x), rows.matrices(w), {2}, {1}, {0}, {0}));
  }
  static std::vector<Sample> samples() {
    const Sample::Operand sizes{{i32, {3}}, 0, 3};
    return {{{{{f32, {6, 4}}}, {{f32, {3, 4, 5}}}, sizes}, {}, 4e-6},
            {{{{f64, {17, 4}}}, {{f64, {3, 4, 5}}}, {{i64, {3}}, 1, 9}}, {}, 1e-12},
            {{{{bf16, {6, 4}}}, {{bf16, {3, 4, 5}}}, sizes}, {}, 4e-6}};
  }
};
const Op<RaggedDot> ragged_dot_op;

}  // namespace

/// The rows of x [M, K] in groups, one behind the other, each times the matrix of its group of w [G, K, N]: [M, N]. group_sizes [G] are
/// integers; below 0 they count as 0. Rows behind the last group give 0, as in jax.lax.ragged_dot. Sums of narrow types are kept in f32.
/// Throws Error when shapes do not fit.
Value ragged_dot(Operand x, Operand w, Operand group_sizes) {
  const DType dtype = promote(x.dtype(), w.dtype());
  return ragged_dot_op({}, cast(x, dtype), cast(w, dtype), group_sizes);
}

}  // namespace rlx
