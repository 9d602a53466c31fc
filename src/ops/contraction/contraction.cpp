// Contractions: dot with JAX's dimension numbers, and the matrix products built on it.
#include <algorithm>
#include <numeric>

#include "ir/array_type.h"
#include "ir/op.h"
#include "ops/axis_list.h"
#include "ops/broadcasting.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using At = std::vector<Index>;
using Ints = std::vector<std::int64_t>;

struct Dot {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "dot";
  static constexpr std::string_view formula =
      "sum over the contracted axes of x * z; result axes: batch, free of x, free of z (JAX dot_general)";
  Ints lhs_contract, rhs_contract, lhs_batch, rhs_batch;
  static auto fields() { return Fields<&Dot::lhs_contract, &Dot::rhs_contract, &Dot::lhs_batch, &Dot::rhs_batch>{}; }

  static Ints free_axes(const Type& t, const Ints& contract, const Ints& batch) {
    Ints axes;
    for (int i = 0; i < t.rank(); ++i)
      if (!contains(contract, i) && !contains(batch, i)) axes.push_back(i);
    return axes;
  }
  static void check_axes(const Type& t, const Ints& contract, const Ints& batch, std::string_view side) {
    Ints all = contract;
    all.insert(all.end(), batch.begin(), batch.end());
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end() || (!all.empty() && (all.front() < 0 || all.back() >= t.rank())))
      fail("rlx.dot: {} axes contract {} and batch {} must be distinct axes of {}", side, to_string(Attr(contract)), to_string(Attr(batch)),
           t.to_string());
  }
  static Type infer(const Dot& op, const Type& x, const Type& z) {
    if (x.dtype != z.dtype || is_bool(x.dtype))
      fail("rlx.dot: operands are {} and {}: both must have one number type", x.to_string(), z.to_string());
    check_axes(x, op.lhs_contract, op.lhs_batch, "lhs");
    check_axes(z, op.rhs_contract, op.rhs_batch, "rhs");
    if (op.lhs_contract.size() != op.rhs_contract.size() || op.lhs_batch.size() != op.rhs_batch.size())
      fail("rlx.dot: the two sides name different numbers of contracted or batch axes");
    auto agree = [&](const Ints& a, const Ints& b, std::string_view what) {
      for (std::size_t i = 0; i < a.size(); ++i)
        if (!(x.dim(a[i]) == z.dim(b[i])))
          fail("rlx.dot: {} axis {} of {} is {}, axis {} of {} is {}", what, a[i], x.to_string(), x.dim(a[i]).to_string(), b[i],
               z.to_string(), z.dim(b[i]).to_string());
    };
    agree(op.lhs_contract, op.rhs_contract, "contracted");
    agree(op.lhs_batch, op.rhs_batch, "batch");
    Type result{x.dtype, {}};
    for (auto axis : op.lhs_batch) result.shape.push_back(x.dim(axis));
    for (auto axis : free_axes(x, op.lhs_contract, op.lhs_batch)) result.shape.push_back(x.dim(axis));
    for (auto axis : free_axes(z, op.rhs_contract, op.rhs_batch)) result.shape.push_back(z.dim(axis));
    return result;
  }
  static Loop loop(const Dot& op, std::span<const Type> types, const Type&, const At& at, const FreshVariable& fresh) {
    const Ints lhs_free = free_axes(types[0], op.lhs_contract, op.lhs_batch), rhs_free = free_axes(types[1], op.rhs_contract, op.rhs_batch);
    Loop result{ReduceKind::sum, accumulation_type(types[0].dtype), {}, {}};
    Source x, z;
    z.operand = 1;
    x.index.resize(types[0].shape.size());
    z.index.resize(types[1].shape.size());
    auto put = [](Source& s, std::int64_t axis, const Index& i) { s.index[static_cast<std::size_t>(axis)] = i; };
    std::size_t next = 0;
    for (std::size_t i = 0; i < op.lhs_batch.size(); ++i, ++next) put(x, op.lhs_batch[i], at[next]), put(z, op.rhs_batch[i], at[next]);
    for (auto axis : lhs_free) put(x, axis, at[next++]);
    for (auto axis : rhs_free) put(z, axis, at[next++]);
    for (std::size_t i = 0; i < op.lhs_contract.size(); ++i) {
      result.variables.push_back(fresh(types[0].dim(op.lhs_contract[i])));
      put(x, op.lhs_contract[i], result.variables.back());
      put(z, op.rhs_contract[i], result.variables.back());
    }
    result.factors = {{x}, {z}};
    return result;
  }

  /// Element offsets of every combination of the given axes, last axis fastest.
  static Ints offsets(const Array& a, const Ints& axes) {
    Ints strides(a.shape().size(), 1), result{0};
    for (std::size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * a.shape()[i];
    for (auto axis : axes) {
      Ints next;
      for (auto base : result)
        for (std::int64_t i = 0; i < a.shape()[static_cast<std::size_t>(axis)]; ++i)
          next.push_back(base + i * strides[static_cast<std::size_t>(axis)]);
      result = std::move(next);
    }
    return result;
  }
  template <class T, class Get, class Set>
  static void contract(const Dot& op, const Array& x, const Array& z, Get get, Set set) {
    auto rest = [](const Array& a, const Ints& c, const Ints& b) { return free_axes(type_of(a), c, b); };
    const Ints xb = offsets(x, op.lhs_batch), zb = offsets(z, op.rhs_batch), xk = offsets(x, op.lhs_contract),
               zk = offsets(z, op.rhs_contract);
    const Ints xm = offsets(x, rest(x, op.lhs_contract, op.lhs_batch)), zn = offsets(z, rest(z, op.rhs_contract, op.rhs_batch));
    std::int64_t out = 0;
    for (std::size_t b = 0; b < xb.size(); ++b)
      for (auto m : xm)
        for (auto n : zn) {
          T total{};
          for (std::size_t k = 0; k < xk.size(); ++k) total += get(x, xb[b] + m + xk[k]) * get(z, zb[b] + n + zk[k]);
          set(out++, total);
        }
  }
  static void evaluate(const Dot& op, std::span<const Array> in, std::span<Array> out) {
    Array& y = out[0];
    if (is_complex(y.dtype()))
      contract<std::complex<double>>(
          op, in[0], in[1], [](const Array& a, auto i) { return a.get_complex(i); }, [&](auto i, auto v) { y.set_complex(i, v); });
    else if (is_float(y.dtype()))
      contract<double>(
          op, in[0], in[1], [](const Array& a, auto i) { return a.get_double(i); }, [&](auto i, auto v) { y.set_double(i, v); });
    else
      contract<std::uint64_t>(
          op, in[0], in[1], [](const Array& a, auto i) { return a.get_uint(i); }, [&](auto i, auto v) { y.set_uint(i, v); });
  }
  static Value again(const Dot& op, Value x, Value z) { return dot(x, z, op.lhs_contract, op.rhs_contract, op.lhs_batch, op.rhs_batch); }
  static Values jvp(const Dot& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    Value left = dx[0] ? again(op, dx[0], x[1]) : Value(), right = dx[1] ? again(op, x[0], dx[1]) : Value();
    return {left && right ? left + right : left ? left : right};
  }
  /// The cotangent of one side: contract dy with the other side over that side's free axes, then put the axes in order.
  static Value transpose_side(Value dy, Value other, const Type& self, const Ints& self_contract, const Ints& self_batch,
                              const Ints& other_contract, const Ints& other_batch, bool self_is_lhs) {
    const Ints self_free = free_axes(self, self_contract, self_batch), other_free = free_axes(other.type(), other_contract, other_batch);
    const auto batches = static_cast<std::int64_t>(self_batch.size());
    Ints dy_batch(self_batch.size()), dy_other(other_free.size());
    std::iota(dy_batch.begin(), dy_batch.end(), 0);
    std::iota(dy_other.begin(), dy_other.end(), batches + (self_is_lhs ? static_cast<std::int64_t>(self_free.size()) : 0));
    Value product = dot(dy, other, dy_other, other_free, dy_batch, other_batch);  // (batch, self_free, other's contracted axes in order)
    // The contracted axes come in the order of `other`'s axes; pair them with ours.
    Ints order(other_contract.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return other_contract[static_cast<std::size_t>(a)] < other_contract[static_cast<std::size_t>(b)]; });
    Ints perm(self.shape.size());
    std::int64_t next = 0;
    for (auto axis : self_batch) perm[static_cast<std::size_t>(axis)] = next++;
    for (auto axis : self_free) perm[static_cast<std::size_t>(axis)] = next++;
    for (auto k : order) perm[static_cast<std::size_t>(self_contract[static_cast<std::size_t>(k)])] = next++;
    return rlx::transpose(product, perm);
  }
  static Values transpose(const Dot& op, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
    return {
        linear[0] ? transpose_side(dy[0], x[1], x[0].type(), op.lhs_contract, op.lhs_batch, op.rhs_contract, op.rhs_batch, true) : Value(),
        linear[1] ? transpose_side(dy[0], x[0], x[1].type(), op.rhs_contract, op.rhs_batch, op.lhs_contract, op.lhs_batch, false)
                  : Value()};
  }
  static Ints shifted(Ints axes) {
    for (auto& axis : axes) ++axis;
    return axes;
  }
  static Values batch(const Dot& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim&) {
    if (batched[0] && batched[1]) {
      Ints lb = shifted(op.lhs_batch), rb = shifted(op.rhs_batch);
      lb.insert(lb.begin(), 0);
      rb.insert(rb.begin(), 0);
      return {dot(x[0], x[1], shifted(op.lhs_contract), shifted(op.rhs_contract), lb, rb)};
    }
    // One side carries the batch as a free axis; bring it to the front of the result.
    Value y = batched[0] ? dot(x[0], x[1], shifted(op.lhs_contract), op.rhs_contract, shifted(op.lhs_batch), op.rhs_batch)
                         : dot(x[0], x[1], op.lhs_contract, shifted(op.rhs_contract), op.lhs_batch, shifted(op.rhs_batch));
    std::int64_t from = static_cast<std::int64_t>(op.lhs_batch.size());
    if (!batched[0]) from += static_cast<std::int64_t>(free_axes(x[0].type(), op.lhs_contract, op.lhs_batch).size());
    return {move_axis(y, from, 0)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, f16, bf16, i8, i32, c64})
      all.push_back({{{{t, {3, 4}}}, {{t, {4, 5}}}}, attrs_of(Dot{{1}, {0}, {}, {}}), 1e-6});
    all.push_back({{{{f32, {2, 3, 4}}}, {{f32, {2, 5, 4}}}}, attrs_of(Dot{{2}, {2}, {0}, {0}}), 1e-6});
    all.push_back({{{{f32, {2, 3, 4, 5}}}, {{f32, {5, 2, 6, 3}}}}, attrs_of(Dot{{3, 1}, {0, 3}, {0}, {1}}), 1e-6});
    all.push_back({{{{f32, {3}}}, {{f32, {4}}}}, attrs_of(Dot{})});
    return all;
  }
};
const Op<Dot> dot_op;

}  // namespace

/// Contracts x and z over the paired axes `lhs_contract` and `rhs_contract`, keeping the paired batch axes; the operands are promoted.
/// Result axes: batch, free axes of x, free axes of z. Throws Error when paired sizes differ.
Value dot(Operand x, Operand z, std::vector<std::int64_t> lhs_contract, std::vector<std::int64_t> rhs_contract,
          std::vector<std::int64_t> lhs_batch /*= {}*/, std::vector<std::int64_t> rhs_batch /*= {}*/) {
  const DType dtype = promote(x.dtype(), z.dtype());
  return dot_op({lhs_contract, rhs_contract, lhs_batch, rhs_batch}, cast(x, dtype), cast(z, dtype));
}

/// Moves axis `from` to position `to`: [2, 3, 4] from 0 to 2 gives [3, 4, 2].
Value move_axis(Operand x, std::int64_t from, std::int64_t to) {
  Ints perm(x.shape().size());
  std::iota(perm.begin(), perm.end(), 0);
  from = normalize_axis("move_axis", from, x.type());
  to = normalize_axis("move_axis", to, x.type());
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return transpose(x, perm);
}

/// Matrix product of x (..., M, K) and z (..., K, N), giving (..., M, N), with NumPy's rules: leading axes broadcast, vectors lose their
/// axis again. Throws Error for operands of rank 0 and sizes that differ.
Value matmul(Operand x, Operand z) {
  if (x.rank() == 0 || z.rank() == 0) fail("rlx.matmul: a scalar has no rows: {} and {}", x.type().to_string(), z.type().to_string());
  if (x.rank() == 1) return z.rank() == 1 ? dot(x, z, {0}, {0}) : dot(z, x, {z.rank() - 2}, {0});
  if (z.rank() <= 2) return dot(x, z, {x.rank() - 1}, {0});
  Dims xb(x.shape().begin(), x.shape().end() - 2), zb(z.shape().begin(), z.shape().end() - 2);
  Dims lead = broadcast_shapes("matmul", xb, zb), xs = lead, zs = lead;
  xs.insert(xs.end(), x.shape().end() - 2, x.shape().end());
  zs.insert(zs.end(), z.shape().end() - 2, z.shape().end());
  Ints batch(lead.size());
  std::iota(batch.begin(), batch.end(), 0);
  const auto rank = static_cast<std::int64_t>(lead.size()) + 2;
  return dot(broadcast_to(x, xs), broadcast_to(z, zs), {rank - 1}, {rank - 2}, batch, batch);
}

}  // namespace rlx
