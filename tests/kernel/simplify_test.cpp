// Every rule of the simplifier, over all values of small types; and what it does to kernels.
#include "kernel/simplify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "rlx/array.h"

namespace rlx {
namespace {

using Letters = std::map<char, Array>;

void find_letters(const Pattern& p, std::set<char>& letters) {
  if (p.kind == Pattern::Kind::letter) letters.insert(p.letter);
  for (const Pattern& arg : p.args) find_letters(arg, letters);
}

Array evaluated(const Pattern& p, const Letters& letters, DType dtype, std::int64_t size) {
  if (p.kind == Pattern::Kind::letter) return letters.at(p.letter);
  Array result(p.kind == Pattern::Kind::number && dtype == boolean ? boolean : dtype, {size});
  if (p.kind == Pattern::Kind::number) {
    for (std::int64_t i = 0; i < size; ++i) result.set_double(i, p.number);
    return result;
  }
  std::vector<Array> args;
  for (const Pattern& arg : p.args) {
    // The condition of a select is bool, whatever the type of the rule.
    const bool condition = p.op == ScalarOp::select && args.empty();
    args.push_back(
        evaluated(arg, letters, condition || (arg.kind == Pattern::Kind::op && arg.args[0].letter == 'c') ? boolean : dtype, size));
  }
  if (p.op != ScalarOp::select) {
    evaluate_scalar(p.op, args, result);
    return result;
  }
  for (std::int64_t i = 0; i < size; ++i) result.set_double(i, args[args[0].get_int(i) ? 1 : 2].get_double(i));
  return result;
}

/// All combinations of all values of an 8-bit type, or of all 16-bit floats where there is one letter.
Letters all_values(const std::set<char>& names, DType dtype, std::int64_t& size) {
  const int bits = is_bool(dtype) ? 1 : info(dtype).bits;
  std::map<char, int> width;
  int total = 0;
  for (char c : names) total += width[c] = c == 'c' ? 1 : bits;
  size = std::int64_t{1} << total;
  Letters letters;
  int shift = 0;
  for (char c : names) {
    Array values(c == 'c' ? boolean : dtype, {size});
    for (std::int64_t i = 0; i < size; ++i) {
      const auto code = static_cast<std::uint64_t>(i) >> shift & ((std::uint64_t{1} << width[c]) - 1);
      const std::size_t bytes = values.bytes().size() / static_cast<std::size_t>(size);
      std::memcpy(values.mutable_bytes().data() + static_cast<std::size_t>(i) * bytes, &code, bytes);
    }
    letters.emplace(c, std::move(values));
    shift += width[c];
  }
  return letters;
}

bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)); }

void prove(const Rule& rule, DType dtype) {
  const Pattern left = parse_pattern(rule.left), right = parse_pattern(rule.right);
  std::set<char> names;
  find_letters(left, names);
  std::int64_t size = 0;
  const Letters letters = all_values(names, dtype, size);
  const Array a = evaluated(left, letters, dtype, size), b = evaluated(right, letters, dtype, size);
  for (std::int64_t i = 0; i < size; ++i)
    ASSERT_TRUE(same(a.get_double(i), b.get_double(i))) << rule.left << " is " << a.get_double(i) << ", " << rule.right << " is "
                                                        << b.get_double(i) << " in " << name(dtype) << " at combination " << i;
}

TEST(Simplify, EveryRuleHoldsForAllValues) {
  for (const Rule& rule : simplify_rules()) {
    std::set<char> names;
    find_letters(parse_pattern(rule.left), names);
    if (rule.types & for_floats) {
      prove(rule, f8e5m2);
      if (names.size() == 1) prove(rule, f16);
    }
    if (rule.types & for_integers)
      for (DType t : {i8, u8}) prove(rule, t);
    if (rule.types & for_bool) prove(rule, boolean);
  }
}

/// More ops mean a longer kernel, so a rule must not add any, or rules could undo each other for ever.
int ops(const Pattern& p) {
  int total = p.kind == Pattern::Kind::op ? 1 : 0;
  for (const Pattern& arg : p.args) total += ops(arg);
  return total;
}

TEST(Simplify, NoRuleMakesAnExpressionLonger) {
  for (const Rule& rule : simplify_rules()) {
    const int left = ops(parse_pattern(rule.left)), right = ops(parse_pattern(rule.right));
    EXPECT_LE(right, left) << rule.left;
    EXPECT_TRUE(right < left || rule.right.starts_with("neg(")) << rule.left << " becomes neither shorter nor cheaper";
  }
}

/// The body of a kernel that stores `make(x)` for an element x of a buffer.
template <class Make>
Expr body(DType dtype, const Make& make) {
  Kernel kernel;
  kernel.buffers = {{{0, 0}, dtype, false}, {{1, 0}, dtype, true}};
  Expr load;
  load.kind = Expr::Kind::load;
  load.dtype = dtype;
  const ExprId x = kernel.add(std::move(load));
  kernel.stores.push_back({1, Index(0), make(kernel, x)});
  simplify(kernel);
  return kernel.expr(kernel.stores[0].value);
}

TEST(Simplify, WorksFromTheOperandsUp) {
  const Expr e = body(f32, [](Kernel& k, ExprId x) {
    const ExprId minus = k.scalar(ScalarOp::neg, {k.scalar(ScalarOp::mul, {x, k.constant(1, f32)}, f32)}, f32);
    return k.scalar(ScalarOp::neg, {minus}, f32);
  });
  EXPECT_EQ(e.kind, Expr::Kind::load);
}

TEST(Simplify, ConstantsAreComputed) {
  const Expr e = body(f32, [](Kernel& k, ExprId x) {
    const ExprId six = k.scalar(ScalarOp::sub, {k.constant(7, f32), k.constant(1, f32)}, f32);
    return k.scalar(ScalarOp::div, {x, six}, f32);
  });
  EXPECT_EQ(e.op, ScalarOp::div) << "1/6 is not exact";
  const Expr wrapped =
      body(i32, [](Kernel& k, ExprId) { return k.scalar(ScalarOp::mul, {k.constant(1 << 30, i32), k.constant(4, i32)}, i32); });
  EXPECT_EQ(wrapped.kind, Expr::Kind::constant);
  EXPECT_EQ(wrapped.integer, 0);
}

TEST(Simplify, AQuotientByAPowerOfTwoIsAProduct) {
  const Expr e = body(f32, [](Kernel& k, ExprId x) { return k.scalar(ScalarOp::div, {x, k.constant(-8, f32)}, f32); });
  EXPECT_EQ(e.op, ScalarOp::mul);
}

TEST(Simplify, AZeroThatMayChangeASignStays) {
  const Expr e = body(f32, [](Kernel& k, ExprId x) { return k.scalar(ScalarOp::add, {x, k.constant(0, f32)}, f32); });
  EXPECT_EQ(e.op, ScalarOp::add) << "-0 + 0 is +0";
  EXPECT_EQ(e.kind, Expr::Kind::scalar);
}

TEST(Simplify, WhatAStoreRoundsIsNotRoundedBeforeIt) {
  const auto rounded = [](DType from) {
    return [from](Kernel& k, ExprId x) {
      const ExprId sum = k.scalar(ScalarOp::add, {k.scalar(ScalarOp::cast, {x}, from), k.constant(3, from)}, from);
      return k.scalar(ScalarOp::cast, {sum}, bf16);
    };
  };
  EXPECT_EQ(body(bf16, rounded(f32)).op, ScalarOp::add);
  EXPECT_EQ(body(bf16, rounded(i32)).op, ScalarOp::cast) << "a store converts no integers";
  EXPECT_EQ(body(bf16, rounded(f64)).op, ScalarOp::cast) << "nor numbers of another register";
}

}  // namespace
}  // namespace rlx
