// Tests of float elements: isnan, isinf, is_finite. Their results are bool.

#include "ops/wide.h"

namespace rlx {
namespace {

/// `test` of x, or of the parts of a complex number joined by `join`.
template <class Test>
Value by_parts(std::string_view op, Value x, Value (*join)(Operand, Operand), Test test) {
  if (is_complex(x.dtype())) return join(test(real(x)), test(imag(x)));
  if (!is_float(x.dtype())) fail("rlx.{}: {} is not allowed (allowed: floats, complex)", op, x.type().to_string());
  return test(x);
}

/// What the tests share.
template <class Self>
struct FloatTest {
  static constexpr OpKind kind = OpKind::composite;
  static auto fields() { return Fields<>{}; }
  static std::vector<Sample> samples() {
    auto all = elementwise_samples({}, -2, 2, false);
    all.push_back({{{{c64, {3, 2}}}}, {}, 0, false});
    return all;
  }
};

struct IsNan : FloatTest<IsNan> {
  static constexpr std::string_view name = "isnan";
  static constexpr std::string_view formula = "x != x";
  static Value body(const IsNan&, Value x) {
    return by_parts(name, x, logical_or, [](Value v) { return ne(v, v); });
  }
};
const Op<IsNan> isnan_op;

struct IsInf : FloatTest<IsInf> {
  static constexpr std::string_view name = "isinf";
  static constexpr std::string_view formula = "|x| = infinity";
  static Value body(const IsInf&, Value x) {
    return by_parts(name, x, logical_or, [](Value v) { return eq(abs(v), like(v, infinity)); });
  }
};
const Op<IsInf> isinf_op;

struct IsFinite : FloatTest<IsFinite> {
  static constexpr std::string_view name = "is_finite";
  static constexpr std::string_view formula = "|x| < infinity; false for NaN";
  static Value body(const IsFinite&, Value x) {
    return by_parts(name, x, logical_and, [](Value v) { return lt(abs(v), like(v, infinity)); });
  }
};
const Op<IsFinite> is_finite_op;

}  // namespace

/// True where x is NaN: bool with the shape of x.
Value isnan(Operand x) { return isnan_op({}, x); }
/// True where x is infinite, of either sign: bool with the shape of x.
Value isinf(Operand x) { return isinf_op({}, x); }
/// True where x is neither infinite nor NaN: bool with the shape of x.
Value is_finite(Operand x) { return is_finite_op({}, x); }

}  // namespace rlx
