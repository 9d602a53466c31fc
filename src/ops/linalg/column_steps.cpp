// Factors of matrices and triangular systems by other ops. A step finishes one column, or one row of a solution, and changes all elements
// that depend on it. Many steps are taken in blocks: those of a block change its columns alone, and the rest follows by one product.
#include "ops/linalg/column_steps.h"

#include <functional>

#include "ops/broadcasting.h"
#include "ops/linalg/matrix_values.h"

namespace rlx {
namespace {

constexpr std::int64_t block_columns = 32, most_without_blocks = 48;

bool in_blocks(const Dim& steps) { return steps.is_static() && steps.value() > most_without_blocks; }
std::int64_t whole_blocks(std::int64_t n) { return (n + block_columns - 1) / block_columns * block_columns; }

// With zeros behind the rows and columns.
Value with_zeros(Value x, std::int64_t rows, std::int64_t columns) {
  return pad(x, {0, 0, 0}, {0, rows - x.dim(1).value(), columns - x.dim(2).value()});
}

Value part_at(Value x, Value row, Value column, const Dim& rows, const Dim& columns) {
  return dynamic_slice(x, {scalar(x, 0, i32), row, column}, {x.dim(0), rows, columns});
}
Value rows_of(Value x, Value row, const Dim& rows) { return part_at(x, row, scalar(x, 0, i32), rows, x.dim(2)); }
Value columns_of(Value x, Value column, const Dim& columns) { return part_at(x, scalar(x, 0, i32), column, x.dim(1), columns); }

// The number of each row, and of each column, of x.
Value row_of(Value x) { return iota(x, {1, x.dim(1), 1}, i32, 1); }
Value column_of(Value x) { return iota(x, {1, 1, x.dim(2)}, i32, 2); }

// carry = step(start, carry) for start = 0, `block_columns`, ..., below n.
Values for_each(const Dim& n, std::int64_t width, const std::function<Values(Value start, const Values& carry)>& step, Operands carry) {
  const Dim count = width == 1 ? n : Dim(n.value() / width);
  return fori_loop(count, [&](Value i, const Values& values) { return step(i * static_cast<double>(width), values); }, carry);
}

// Solutions

// Row after row: l (count, n, n), b (count, n, k).
Value solved_by_rows(Value l, Value b, bool unit_diagonal) {
  const auto step = [&](Value i, const Values& carry) {
    const Value x = carry[0], row = row_of(x), right = rows_of(x, i, 1);
    const Value found = unit_diagonal ? right : right / part_at(l, i, i, 1, 1);
    const Value rest = x - columns_of(l, i, 1) * found;
    return Values{select(eq(row, i), found, select(gt(row, i), rest, x))};
  };
  return for_each(b.dim(1), 1, step, {b})[0];
}

Value solved_by_blocks(Value l, Value b, bool unit_diagonal) {
  const std::int64_t n = b.dim(1).value(), size = whole_blocks(n);
  l = with_zeros(l, size, size), b = with_zeros(b, size, b.dim(2).value());
  const auto step = [&](Value start, const Values& carry) {
    const Value x = carry[0], row = row_of(x), end = start + block_columns;
    const Value found =
        solved_by_rows(part_at(l, start, start, block_columns, block_columns), rows_of(x, start, block_columns), unit_diagonal);
    const Value rest = x - matmul(columns_of(l, start, block_columns), found);
    return Values{select(ge(row, end), rest, dynamic_update(x, found, {scalar(x, 0, i32), start, scalar(x, 0, i32)}))};
  };
  return slice_axis(for_each(size, block_columns, step, {b})[0], 1, 0, n);
}

Value solved(Value l, Value b, bool unit_diagonal) {
  return in_blocks(b.dim(1)) ? solved_by_blocks(l, b, unit_diagonal) : solved_by_rows(l, b, unit_diagonal);
}

// L U

// What LAPACK compares (icamax, izamax).
Value magnitude(Value x) { return is_complex(x.dtype()) ? abs(real(x)) + abs(imag(x)) : abs(x); }

// Eliminates the first `steps` columns of `panel` (count, rows, columns), whose row `first` is that of the first pivot. Rows from `rows`
// on are padding.
struct Panel {
  Value factors, order, pivots;  // (count, rows, columns), (count, rows, 1), (steps, count)
};
Panel factored(Value panel, Value first, const Dim& steps, const Dim& rows) {
  const Value row = row_of(panel), column = column_of(panel);
  /// The first of the largest elements of column i from row k on; NaN counts only where it is in row k.
  const auto pivot_of = [&](const Value& a, const Value& i, const Value& k) {
    const Value size = magnitude(columns_of(a, i, 1)), none = like(size, -1);
    const Value number = select(eq(size, size), size, select(eq(row, k), like(size, infinity), none));
    const Value inside = logical_and(ge(row, k), lt(row, dim_value(row, rows, i32)));
    return max(argmax(select(inside, number, none), 1, true), k);  // (count, 1, 1); behind the last row: k
  };
  const auto step = [&](const Values& carry, const Values& x) {
    const Value a = carry[0], i = x[0], k = i + first, pivot = pivot_of(a, i, k);
    const Value from = select(eq(row, k), pivot, select(eq(row, pivot), k, row));  // (count, rows, 1)
    const Value moved = take_along_axis(a, from, 1), pivot_row = take_along_axis(a, pivot, 1);
    const Value divisor = columns_of(pivot_row, i, 1), below = columns_of(moved, i, 1), factor = below / divisor;
    const Value to_change = logical_and(logical_and(gt(row, k), ge(column, i)), ne(divisor, like(divisor, 0)));
    const Value changed = select(eq(column, i), factor, moved - factor * pivot_row);
    return std::pair{Values{select(to_change, changed, moved), take_along_axis(carry[1], from, 1)}, Values{reshape(pivot, {a.dim(0)})}};
  };
  const Value order = broadcast_to(row, {panel.dim(0), panel.dim(1), 1});
  const Values all = scan(step, {panel, order}, {iota(panel, {steps}, i32)}, steps);
  return {all[0], all[1], all[2]};
}

// One block of columns, from `start` on: what is left of it is permuted, to the right of it eliminated.
Panel with_next_block(Value a, Value start, const Dim& rows) {
  const Value row = row_of(a), column = column_of(a), end = start + block_columns;
  Panel panel = factored(columns_of(a, start, block_columns), start, block_columns, rows);
  const Value moved = take_along_axis(a, panel.order, 1);
  const Value upper = solved_by_rows(rows_of(panel.factors, start, block_columns), rows_of(moved, start, block_columns), true);
  const Value rest = select(ge(row, end), moved - matmul(panel.factors, upper),
                            dynamic_update(moved, upper, {scalar(a, 0, i32), start, scalar(a, 0, i32)}));
  const Value left = dynamic_update(moved, panel.factors, {scalar(a, 0, i32), scalar(a, 0, i32), start});
  panel.factors = select(ge(column, end), rest, left);
  return panel;
}

// a (count, rows, columns).
Panel factored_by_blocks(Value a, std::int64_t steps) {
  const std::int64_t rows = a.dim(1).value(), columns = a.dim(2).value(), blocks = whole_blocks(steps) / block_columns;
  const Value whole = with_zeros(a, whole_blocks(rows), whole_blocks(columns));
  const auto step = [&](const Values& carry, const Values& x) {
    const Panel next = with_next_block(carry[0], x[0] * static_cast<double>(block_columns), rows);
    return std::pair{Values{next.factors, take_along_axis(carry[1], next.order, 1)}, Values{next.pivots}};
  };
  const Value order = broadcast_to(row_of(whole), {a.dim(0), whole.dim(1), 1});
  const Values all = scan(step, {whole, order}, {iota(a, {blocks}, i32)}, blocks);
  const Value pivots = reshape(all[2], {blocks * block_columns, a.dim(0)});
  return {slice_axis(slice_axis(all[0], 1, 0, rows), 2, 0, columns), slice_axis(all[1], 1, 0, rows), slice_axis(pivots, 0, 0, steps)};
}

// L L^H

Value over_real(Value x, Value divisor) { return is_complex(x.dtype()) ? complex(real(x) / divisor, imag(x) / divisor) : x / divisor; }

// Finishes `steps` columns of `panel`, whose diagonal begins in row `first`.
Value rooted(Value panel, Value first, const Dim& steps) {
  const Value row = row_of(panel), column = column_of(panel);
  const auto step = [&](Value i, const Values& carry) {
    const Value a = carry[0], k = i + first, root = sqrt(real_part(part_at(a, k, i, 1, 1)));
    const Value below = over_real(columns_of(a, i, 1), root), beside = over_real(part_at(a, first, i, steps, 1), root);
    const Value rest = a - below * conj(swap_axes(beside, 1, 2));
    const Value changed = select(eq(column, i), below, select(gt(column, i), rest, a));
    return Values{select(gt(row, k), changed, select(logical_and(eq(row, k), eq(column, i)), cast(root, a.dtype()), a))};
  };
  return for_each(steps, 1, step, {panel})[0];
}

Value rooted_by_blocks(Value a) {
  const std::int64_t n = a.dim(1).value(), size = whole_blocks(n);
  const auto step = [&](Value start, const Values& carry) {
    const Value all = carry[0], end = start + block_columns;
    const Value panel = rooted(columns_of(all, start, block_columns), start, block_columns);
    const Value rest = all - matmul(panel, conj(swap_axes(panel, 1, 2)));
    const Value left = dynamic_update(all, panel, {scalar(a, 0, i32), scalar(a, 0, i32), start});
    return Values{select(ge(column_of(all), end), rest, left)};
  };
  const Value factors = for_each(size, block_columns, step, {with_zeros(a, size, size)})[0];
  return slice_axis(slice_axis(factors, 1, 0, n), 2, 0, n);
}

}  // namespace

Value lower_solve_in_steps(Value l, Value b, bool unit_diagonal) {
  if (l.dim(-1) == Dim(0) || b.dim(-1) == Dim(0)) return b;
  return reshape(solved(stacked(l), stacked(b), unit_diagonal), b.shape());
}

Values lu_in_steps(Value a) {
  const Value all = stacked(a);
  const Dim &rows = all.dim(1), &columns = all.dim(2);
  const Dim steps = rows == columns || rows.value() < columns.value() ? rows : columns;
  Dims of_pivots(a.shape().begin(), a.shape().end() - 2), of_order = of_pivots;
  of_pivots.push_back(steps), of_order.push_back(rows);
  if (steps == Dim(0)) return {a, iota(a, of_pivots, i32, -1), iota(a, of_order, i32, -1)};
  const Panel found = in_blocks(steps) ? factored_by_blocks(all, steps.value()) : factored(all, scalar(a, 0, i32), steps, rows);
  return {reshape(found.factors, a.shape()), reshape(swap_axes(found.pivots, 0, 1), of_pivots), reshape(found.order, of_order)};
}

Value cholesky_in_steps(Value a) {
  const Value all = stacked(a);
  const Dim& n = all.dim(1);
  if (n == Dim(0)) return a;
  const Value factors = in_blocks(n) ? rooted_by_blocks(all) : rooted(all, scalar(a, 0, i32), n);
  const Value diagonal = rlx::diagonal(real_part(factors), 1, 2);
  const Value positive = reduce_and(gt(diagonal, like(diagonal, 0)), {1}, true);
  const Value lower = select(expand_dims(positive, {-1}), factors, like(factors, nan));
  return reshape(tril(lower), a.shape());
}

}  // namespace rlx
