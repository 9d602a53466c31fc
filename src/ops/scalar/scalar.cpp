#include "ops/scalar/scalar.h"

#include <cmath>
#include <complex>
#include <limits>

#include "rlx/ops.h"

#include "ir/extremum.h"
#include "ops/broadcasting.h"

namespace rlx {

namespace scalar_values {
// The values of integer and floating-point corner cases, as StableHLO and JAX define them.
/// Integers wrap: computed on their unsigned bits.
template <class T>
auto bits_of(T x) {
  if constexpr (std::is_integral_v<T>) return static_cast<std::uint64_t>(x);
  else return x;
}
template <class T>
T neg(T x) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(0 - bits_of(x));
  else return -x;
}
template <class T>
T add(T x, T z) {
  return static_cast<T>(bits_of(x) + bits_of(z));
}
template <class T>
T sub(T x, T z) {
  return static_cast<T>(bits_of(x) - bits_of(z));
}
template <class T>
T mul(T x, T z) {
  return static_cast<T>(bits_of(x) * bits_of(z));
}
template <class T>
auto abs(T x) {
  if constexpr (std::is_same_v<T, std::uint64_t>) return x;
  else if constexpr (std::is_integral_v<T>) return x < 0 ? static_cast<T>(0 - static_cast<std::uint64_t>(x)) : x;
  else return std::abs(x);
}
template <class T>
constexpr bool is_complex_v = !std::is_floating_point_v<T> && !std::is_integral_v<T>;
template <class T>
T sign(T x) {
  if constexpr (is_complex_v<T>) return x == T{} ? x : x / std::abs(x);
  else if constexpr (std::is_floating_point_v<T>) return x > 0 ? 1 : x < 0 ? -1 : x;
  else return static_cast<T>((x > 0) - (x < 0));
}
// The complex forms lose no digits near 0, where e^x - 1 and log(1 + x) would.
template <class T>
T expm1(T x) {
  if constexpr (!is_complex_v<T>) return std::expm1(x);
  else {
    const double a = x.real(), b = x.imag(), half = std::sin(b / 2);
    return std::abs(a) < 1 ? T{std::expm1(a) * std::cos(b) - 2 * half * half, std::exp(a) * std::sin(b)} : std::exp(x) - 1.0;
  }
}
template <class T>
T log1p(T x) {
  if constexpr (!is_complex_v<T>) return std::log1p(x);
  else {
    const double a = x.real(), b = x.imag();
    return std::abs(x) < 0.5 ? T{std::log1p(a * (2 + a) + b * b) / 2, std::atan2(b, 1 + a)} : std::log(x + 1.0);
  }
}
template <class T>
T div(T x, T z, int) {
  if constexpr (std::is_integral_v<T>) {
    if (z == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>)
      if (z == -1) return static_cast<T>(0 - static_cast<std::uint64_t>(x));
  }
  return x / z;
}
template <class T>
T rem(T x, T z) {
  if constexpr (std::is_floating_point_v<T>) return std::fmod(x, z);
  else if (z == 0) return x;
  else if constexpr (std::is_signed_v<T>) return z == -1 ? 0 : x % z;
  else return x % z;
}
template <class T>
T power(T x, T z) {
  if constexpr (!std::is_floating_point_v<T>) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    if (z == T{}) return 1;
    if (x == T{}) return z.real() > 0 ? T{} : T{nan, nan};
  }
  return std::pow(x, z);
}
template <class T>
T max(T x, T z) {
  return maximum(x, z);
}
template <class T>
T min(T x, T z) {
  return minimum(x, z);
}
template <class T>
T shl(T x, T z, int bits) {
  const bool out = z < 0 || static_cast<std::uint64_t>(z) >= static_cast<std::uint64_t>(bits);
  return out ? 0 : static_cast<T>(static_cast<std::uint64_t>(x) << z);
}
template <class T>
T shr(T x, T z, int bits) {
  const bool out = z < 0 || static_cast<std::uint64_t>(z) >= static_cast<std::uint64_t>(bits);
  return out ? (x < 0 ? static_cast<T>(-1) : 0) : x >> z;
}
}  // namespace scalar_values

namespace {

enum class Types : std::uint8_t { numbers, reals, ordered, floats, inexact, bits, integers, any };
enum class Result : std::uint8_t { same, boolean, real };

bool allowed(Types types, DType t) {
  switch (types) {
    case Types::numbers: return !is_bool(t);
    case Types::reals: return !is_bool(t) && !is_complex(t);
    case Types::ordered: return !is_complex(t);
    case Types::floats: return is_float(t);
    case Types::inexact: return is_float(t) || is_complex(t);
    case Types::bits: return is_integer(t) || is_bool(t);
    case Types::integers: return is_integer(t);
    case Types::any: return true;
  }
  return false;
}

std::string_view describe(Types types) {
  constexpr std::array<std::string_view, 8> words{"floats, integers, complex",
                                                  "floats, integers",
                                                  "floats, integers, bool",
                                                  "floats",
                                                  "floats, complex",
                                                  "integers, bool",
                                                  "integers",
                                                  "any type"};
  return words[static_cast<std::size_t>(types)];
}

DType result_type(Result result, DType t) {
  if (result == Result::boolean) return boolean;
  return result == Result::real && is_complex(t) ? t == c128 ? f64 : f32 : t;
}

std::vector<Type> infer(std::string_view name, Types types, Result result, std::span<const Type> operands) {
  for (const Type& t : operands) {
    if (!allowed(types, t.dtype)) fail("rlx.{}: {} is not allowed (allowed: {})", name, rlx::name(t.dtype), describe(types));
    if (!(t == operands[0])) fail("rlx.{}: operands differ: {} and {}", name, operands[0].to_string(), t.to_string());
  }
  return {{result_type(result, operands[0].dtype), operands[0].shape}};
}

// Derivative helpers named in the table.
Value larger(Value x, Value z, Value d) { return select(eq(x, z), d * 0.5, select(gt(x, z), d, zeros_like(d))); }
Value abs_tangent(Value x, Value y, Value d) {
  if (!is_complex(x.dtype())) return d * sign(x);
  Value zero = eq(y, zeros_like(y)), safe = select(zero, ones_like(y), y);
  return real(d) * (real(x) / safe) + imag(d) * (imag(x) / safe);
}
// A power of complex numbers takes fewer kernels' operations than a quotient.
Value root_tangent(Value x, Value y, Value d) { return (is_complex(x.dtype()) ? d * (y * y * y) : d * (y / x)) * -0.5; }
Value trunc_ratio(Value x, Value z) {
  Value ratio = x / z;
  return sign(ratio) * floor(abs(ratio));
}
Value log_or_zero(Value x) {
  Value zero = zeros_like(x);
  Value is_zero = eq(x, zero);
  return select(is_zero, zero, log(select(is_zero, zero + 1, x)));
}

template <ScalarOp op>
struct Row;

#define ZERO Value()
#define SCALAR(op, arity, types, result_type, value, d0, d1, d2, low, high, ulp, work, formula)               \
  template <>                                                                                                 \
  struct Row<ScalarOp::op> {                                                                                  \
    static constexpr Types allowed_types = Types::types;                                                      \
    static constexpr Result result = Result::result_type;                                                     \
    template <class T>                                                                                        \
    static auto apply([[maybe_unused]] T x, [[maybe_unused]] T z, [[maybe_unused]] int bits) {                \
      return value;                                                                                           \
    }                                                                                                         \
    static Values jvp(std::span<const Value> in, [[maybe_unused]] Value y, std::span<const Value> tangents) { \
      [[maybe_unused]] Value x = in[0], z = in.size() > 1 ? in[1] : Value();                                  \
      Value total;                                                                                            \
      auto add_term = [&](Value term) { total = !term ? total : total ? total + term : term; };               \
      if (tangents[0]) {                                                                                      \
        [[maybe_unused]] Value d = tangents[0];                                                               \
        add_term(d0);                                                                                         \
      }                                                                                                       \
      if (arity > 1 && tangents[1]) {                                                                         \
        [[maybe_unused]] Value d = tangents[1];                                                               \
        add_term(d1);                                                                                         \
      }                                                                                                       \
      return {total};                                                                                         \
    }                                                                                                         \
  };
#include "ops/scalar/scalar.def"
#undef SCALAR
#undef ZERO

constexpr std::array<ScalarInfo, scalar_table_size> infos{{
#define SCALAR(op, arity, types, result, value, d0, d1, d2, low, high, ulp, work, formula) \
  {#op, arity, std::string_view(#result) == "boolean", low, high, ulp, work, formula},
#include "ops/scalar/scalar.def"
#undef SCALAR
}};

template <ScalarOp op, class T, class Get, class Set>
void loop(std::span<const Array> in, Array& out, Get get, Set set) {
  const int bits = info(in[0].dtype()).bits;
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const T x = get(in[0], i), z = in.size() > 1 ? get(in[1], i) : T{};
    set(i, Row<op>::template apply<T>(x, z, bits));
  }
}

template <ScalarOp op>
void evaluate_row(std::span<const Array> in, Array& out) {
  constexpr Types types = Row<op>::allowed_types;
  const DType t = in[0].dtype();
  auto store = [&](std::int64_t i, auto value) {
    using V = decltype(value);
    if constexpr (std::is_same_v<V, bool>) out.set_double(i, value);
    else if constexpr (std::is_same_v<V, std::uint64_t>)
      is_bool(out.dtype()) ? out.set_double(i, static_cast<double>(value & 1)) : out.set_uint(i, value);
    else if constexpr (std::is_same_v<V, std::int64_t>) out.set_int(i, value);
    else if constexpr (std::is_same_v<V, std::complex<double>>) out.set_complex(i, value);
    else out.set_double(i, value);
  };
  if (is_complex(t)) {
    if constexpr (types == Types::numbers || types == Types::inexact || types == Types::any)
      if constexpr (requires(std::complex<double> c) { Row<op>::apply(c, c, 0); })
        return loop<op, std::complex<double>>(in, out, [](const Array& a, std::int64_t i) { return a.get_complex(i); }, store);
  } else if (is_float(t)) {
    if constexpr (types != Types::bits && types != Types::integers)
      return loop<op, double>(in, out, [](const Array& a, std::int64_t i) { return a.get_double(i); }, store);
  } else if constexpr (types != Types::floats && types != Types::inexact) {
    if (is_signed_int(t)) return loop<op, std::int64_t>(in, out, [](const Array& a, std::int64_t i) { return a.get_int(i); }, store);
    return loop<op, std::uint64_t>(in, out, [](const Array& a, std::int64_t i) { return a.get_uint(i); }, store);
  }
  fail_internal("rlx.{}: no reference evaluation for {}", infos[static_cast<std::size_t>(op)].name, rlx::name(t));
}

/// Outside the template below: clang 19 reads `Dims{5}` of an initializer list there as five zeros.
const std::array<Dims, 3> sample_shapes{Dims{}, Dims{5}, Dims{2, 3, 4}};

/// Samples of ranks 0, 1 and 3 for each dtype that the row allows.
template <ScalarOp op>
std::vector<Sample> samples() {
  const ScalarInfo& row = infos[static_cast<std::size_t>(op)];
  std::vector<Sample> all;
  for (DType t : {f32, f64, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64, u8, u16, u32, u64, i4, u4, boolean, c64, c128}) {
    if (!allowed(Row<op>::allowed_types, t)) continue;
    double low = is_unsigned_int(t) || is_bool(t) ? std::max(0.0, row.low) : row.low;
    for (const Dims& shape : sample_shapes)
      all.push_back(
          {std::vector<Sample::Operand>(static_cast<std::size_t>(row.operands), {{t, shape}, low, row.high}), {}, 0, !row.gives_bool});
  }
  return all;
}

template <ScalarOp op>
const OpDef& scalar_def() {
  static const OpDef def = [] {
    constexpr const ScalarInfo& row = infos[static_cast<std::size_t>(op)];
    OpDef d;
    d.name = row.name;
    d.kind = OpKind::scalar;
    d.scalar = static_cast<int>(op);
    d.arity = row.operands;
    d.formula = row.formula;
    d.infer = [](const Attrs&, std::span<const Type> x) { return infer(row.name, Row<op>::allowed_types, Row<op>::result, x); };
    d.evaluate = [](const Attrs&, std::span<const Array> x, std::span<Array> y, const RunRegion&) { evaluate_row<op>(x, y[0]); };
    if (!row.gives_bool)
      d.jvp = [](const Attrs&, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
        return Row<op>::jvp(x, y[0], dx);
      };
    else d.not_differentiable = "its result is bool";
    d.samples = &samples<op>;
    return d;
  }();
  return def;
}

template <int... i>
bool register_rows(std::integer_sequence<int, i...>) {
  (register_op(scalar_def<static_cast<ScalarOp>(i)>()), ...);
  return true;
}
const bool registered = register_rows(std::make_integer_sequence<int, scalar_table_size>{});

template <ScalarOp op>
Value build(Value x) {
  return apply(scalar_def<op>(), {}, std::array{x})[0];
}
template <ScalarOp op>
Value build(Value x, Value z) {
  std::tie(x, z) = match(name(op), x, z);
  return apply(scalar_def<op>(), {}, std::array{x, z})[0];
}

}  // namespace

const ScalarInfo& scalar_info(ScalarOp op) { return infos[static_cast<std::size_t>(op)]; }

void evaluate_scalar(ScalarOp op, std::span<const Array> operands, Array& result) {
  find_op(name(op)).evaluate({}, operands, {&result, 1}, {});
}

int work(ScalarOp op) { return static_cast<int>(op) < scalar_table_size ? scalar_info(op).work : 1; }

std::string_view name(ScalarOp op) {
  constexpr std::array<std::string_view, 7> others{"select", "cast", "bitcast", "complex", "real", "imag", "fma"};
  const auto i = static_cast<int>(op);
  return i < scalar_table_size ? infos[static_cast<std::size_t>(i)].name : others[static_cast<std::size_t>(i - scalar_table_size)];
}

#define SCALAR_1(op) \
  Value op(Operand x) { return build<ScalarOp::op>(x); }
#define SCALAR_2(op) \
  Value op(Operand x, Operand z) { return build<ScalarOp::op>(x, z); }
#define NUMBERS_same(op)
#define NUMBERS_real(op)
#define NUMBERS_boolean(op)                                                            \
  Value op(Operand x, double z) { return build<ScalarOp::op>(x, literal(#op, x, z)); } \
  Value op(double x, Operand z) { return build<ScalarOp::op>(literal(#op, z, x), z); }
#define SCALAR(op, arity, types, result, ...) SCALAR_##arity(op) NUMBERS_##result(op)
#include "ops/scalar/scalar.def"
#undef SCALAR
#undef SCALAR_1
#undef SCALAR_2
#undef NUMBERS_same
#undef NUMBERS_real
#undef NUMBERS_boolean

}  // namespace rlx
