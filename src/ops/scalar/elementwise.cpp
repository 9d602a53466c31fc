// Elementwise ops whose types an attribute or an operand decides: select, cast, bitcast, complex, real, imag, conj.
#include "ops/broadcasting.h"
#include "ops/scalar/scalar.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

void check_same_shape(std::string_view op, const Type& a, const Type& b) {
  if (!(a.shape == b.shape)) fail("rlx.{}: shapes differ: {} and {}", op, a.to_string(), b.to_string());
}

DType real_type(DType t) { return t == c128 ? f64 : f32; }

struct Select {
  static constexpr OpKind kind = OpKind::scalar;
  static constexpr std::string_view name = "select";
  static constexpr ScalarOp scalar = ScalarOp::select;
  static constexpr std::string_view formula = "a where the condition holds, else b";
  static auto fields() { return Fields<>{}; }
  static Type infer(const Select&, const Type& condition, const Type& a, const Type& b) {
    if (!is_bool(condition.dtype)) fail("rlx.select: the condition is {} (allowed: bool)", condition.to_string());
    if (!(a == b)) fail("rlx.select: operands differ: {} and {}", a.to_string(), b.to_string());
    check_same_shape("select", condition, a);
    return a;
  }
  static void evaluate(const Select&, std::span<const Array> x, std::span<Array> y) {
    for (std::int64_t i = 0; i < y[0].size(); ++i) {
      const Array& from = x[x[0].get_uint(i) ? 1 : 2];
      if (is_integer(from.dtype())) y[0].set_uint(i, from.get_uint(i));
      else y[0].set_complex(i, from.get_complex(i));
    }
  }
  static Values jvp(const Select&, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    if (!dx[1] && !dx[2]) return {Value()};
    Value zero = zeros_like(dx[1] ? dx[1] : dx[2]);
    return {select(x[0], dx[1] ? dx[1] : zero, dx[2] ? dx[2] : zero)};
  }
  static Values transpose(const Select&, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
    Value zero = zeros_like(dy[0]);
    return {Value(), linear[1] ? select(x[0], dy[0], zero) : Value(), linear[2] ? select(x[0], zero, dy[0]) : Value()};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16, i32, u8, boolean, c64})
      all.push_back({{{{boolean, {3, 4}}, 0, 1}, {{t, {3, 4}}, 0, 2}, {{t, {3, 4}}, 0, 2}}, {}});
    return all;
  }
};
const Op<Select> select_op;

struct Cast {
  static constexpr OpKind kind = OpKind::scalar;
  static constexpr std::string_view name = "cast";
  static constexpr ScalarOp scalar = ScalarOp::cast;
  static constexpr std::string_view formula =
      "x as `to`: round half to even; float to integer truncates, saturates, NaN gives 0; integers wrap; to bool: x != 0";
  DType to = f32;
  static auto fields() { return Fields<&Cast::to>{}; }
  static Type infer(const Cast& op, const Type& x) { return {op.to, x.shape}; }
  static void evaluate(const Cast& op, std::span<const Array> x, std::span<Array> y) {
    for (std::int64_t i = 0; i < y[0].size(); ++i) {
      if (is_bool(op.to)) y[0].set_double(i, x[0].get_complex(i) != 0.0);
      else if (is_signed_int(x[0].dtype())) y[0].set_int(i, x[0].get_int(i));
      else if (is_unsigned_int(x[0].dtype()) || is_bool(x[0].dtype())) y[0].set_uint(i, x[0].get_uint(i));
      else if (is_complex(op.to)) y[0].set_complex(i, x[0].get_complex(i));
      else y[0].set_double(i, x[0].get_double(i));
    }
  }
  static bool carries_tangent(DType t) { return is_float(t) || is_complex(t); }
  static Values jvp(const Cast& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    return {carries_tangent(op.to) && carries_tangent(x[0].dtype()) && dx[0] ? cast(dx[0], op.to) : Value()};
  }
  static Values transpose(const Cast&, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    return {cast(dy[0], x[0].dtype())};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType from : {f32, f64, f16, bf16, f8e4m3, f8e5m2, i8, i32, i64, u8, u32, i4, u4, boolean})
      for (DType to : {f32, f64, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64, u8, u16, u32, u64, i4, u4, boolean})
        all.push_back(
            {{{{from, {3, 4}}, is_unsigned_int(from) ? 0.0 : -3.0, 3}}, attrs_of(Cast{.to = to}), 0, is_float(from) && is_float(to)});
    return all;
  }
};
const Op<Cast> cast_op;

struct Bitcast {
  static constexpr OpKind kind = OpKind::scalar;
  static constexpr std::string_view name = "bitcast";
  static constexpr ScalarOp scalar = ScalarOp::bitcast;
  static constexpr std::string_view formula = "the same bits read as `to`, of the same width";
  static constexpr std::string_view not_differentiable = "it reinterprets bits";
  DType to = i32;
  static auto fields() { return Fields<&Bitcast::to>{}; }
  static Type infer(const Bitcast& op, const Type& x) {
    if (info(op.to).bits != info(x.dtype).bits || is_bool(op.to) != is_bool(x.dtype))
      fail("rlx.bitcast: {} and {} have different widths", rlx::name(x.dtype), rlx::name(op.to));
    return {op.to, x.shape};
  }
  static void evaluate(const Bitcast&, std::span<const Array> x, std::span<Array> y) {
    std::copy(x[0].bytes().begin(), x[0].bytes().end(), y[0].mutable_bytes().begin());
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {5}}}}, attrs_of(Bitcast{.to = i32}), 0, false},
            {{{{i32, {5}}, -100, 100}}, attrs_of(Bitcast{.to = f32}), 0, false},
            {{{{f64, {5}}}}, attrs_of(Bitcast{.to = u64}), 0, false},
            {{{{bf16, {5}}}}, attrs_of(Bitcast{.to = u16}), 0, false}};
  }
};
const Op<Bitcast> bitcast_op;

DType unsigned_of(int bits) { return bits == 4 ? u4 : bits == 8 ? u8 : bits == 16 ? u16 : bits == 32 ? u32 : u64; }

// How far the words of an element lie from its lowest bit: 0, bits, 2 bits, ... along the last axis.
Value places_of_words(Value words, int bits) { return iota(words, words.shape(), words.dtype(), -1) * scalar(words, bits, words.dtype()); }

// The words of `to`'s width that each element consists of, the lowest bits first, along a new axis.
Value split_into_words(Value x, DType to) {
  const int whole = info(x.dtype()).bits, bits = info(to).bits;
  Value element = expand_dims(bitcast(x, unsigned_of(whole)), {-1});
  Dims shape = element.shape();
  shape.back() = whole / bits;
  element = broadcast_to(element, shape);
  return bitcast(cast(shr(element, places_of_words(element, bits)), unsigned_of(bits)), to);
}

// The elements of type `to` that the words along the last axis make, the lowest bits first.
Value joined_from_words(Value x, DType to) {
  const int bits = info(x.dtype()).bits, whole = info(to).bits;
  if (x.rank() == 0 || !(x.dim(-1) == Dim(whole / bits)))
    fail("rlx.bitcast: {} to {} (allowed: a last axis of {} elements)", x.type().to_string(), name(to), whole / bits);
  const Value words = cast(bitcast(x, unsigned_of(bits)), unsigned_of(whole));
  return bitcast(sum(shl(words, places_of_words(words, bits)), {-1}), to);
}

struct MakeComplex {
  static constexpr OpKind kind = OpKind::scalar;
  static constexpr std::string_view name = "complex";
  static constexpr ScalarOp scalar = ScalarOp::complex;
  static constexpr std::string_view formula = "re + i * im";
  static auto fields() { return Fields<>{}; }
  static Type infer(const MakeComplex&, const Type& re, const Type& im) {
    if (!(re == im) || (re.dtype != f32 && re.dtype != f64))
      fail("rlx.complex: parts are {} and {} (allowed: two of the same, f32 or f64)", re.to_string(), im.to_string());
    return {re.dtype == f64 ? c128 : c64, re.shape};
  }
  static void evaluate(const MakeComplex&, std::span<const Array> x, std::span<Array> y) {
    for (std::int64_t i = 0; i < y[0].size(); ++i) y[0].set_complex(i, {x[0].get_double(i), x[1].get_double(i)});
  }
  static Values jvp(const MakeComplex&, std::span<const Value>, std::span<const Value>, std::span<const Value> dx) {
    if (!dx[0] && !dx[1]) return {Value()};
    Value zero = zeros_like(dx[0] ? dx[0] : dx[1]);
    return {complex(dx[0] ? dx[0] : zero, dx[1] ? dx[1] : zero)};
  }
  // The transpose does not conjugate: the bilinear pairing of re + i im with dy is re * dy + im * (i dy).
  static Values transpose(const MakeComplex&, std::span<const Value>, const std::vector<bool>& linear, std::span<const Value> dy) {
    return {linear[0] ? real(dy[0]) : Value(), linear[1] ? -imag(dy[0]) : Value()};
  }
  static std::vector<Sample> samples() { return {{{{{f32, {4}}}, {{f32, {4}}}}, {}}, {{{{f64, {4}}}, {{f64, {4}}}}, {}}}; }
};
const Op<MakeComplex> complex_op;

/// Shape, derivative and samples that real and imag share.
template <class Self>
struct Part {
  static constexpr OpKind kind = OpKind::scalar;
  static auto fields() { return Fields<>{}; }
  static Type infer(const Self&, const Type& z) {
    if (!is_complex(z.dtype)) fail("rlx.{}: {} is not complex", Self::name, z.to_string());
    return {real_type(z.dtype), z.shape};
  }
  static Values jvp(const Self&, std::span<const Value>, std::span<const Value>, std::span<const Value> dx) {
    return {dx[0] ? apply(Op<Self>::def(), {}, dx)[0] : Value()};
  }
  static std::vector<Sample> samples() { return {{{{{c64, {4}}}}, {}}, {{{{c128, {4}}}}, {}}}; }
};

struct Real : Part<Real> {
  static constexpr std::string_view name = "real";
  static constexpr ScalarOp scalar = ScalarOp::real;
  static constexpr std::string_view formula = "the real part";
  static void evaluate(const Real&, std::span<const Array> x, std::span<Array> y) {
    for (std::int64_t i = 0; i < y[0].size(); ++i) y[0].set_double(i, x[0].get_complex(i).real());
  }
  static Values transpose(const Real&, std::span<const Value>, const std::vector<bool>&, std::span<const Value> dy) {
    return {complex(dy[0], zeros_like(dy[0]))};
  }
};
const Op<Real> real_op;

struct Imag : Part<Imag> {
  static constexpr std::string_view name = "imag";
  static constexpr ScalarOp scalar = ScalarOp::imag;
  static constexpr std::string_view formula = "the imaginary part";
  static void evaluate(const Imag&, std::span<const Array> x, std::span<Array> y) {
    for (std::int64_t i = 0; i < y[0].size(); ++i) y[0].set_double(i, x[0].get_complex(i).imag());
  }
  static Values transpose(const Imag&, std::span<const Value>, const std::vector<bool>&, std::span<const Value> dy) {
    return {complex(zeros_like(dy[0]), -dy[0])};
  }
};
const Op<Imag> imag_op;

struct Conj {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "conj";
  static constexpr std::string_view formula = "re - i * im";
  static auto fields() { return Fields<>{}; }
  static Value body(const Conj&, Value z) { return complex(real(z), -imag(z)); }
  static std::vector<Sample> samples() { return {{{{{c64, {4}}}}, {}}, {{{{c128, {2, 3}}}}, {}}}; }
};
const Op<Conj> conj_op;

}  // namespace

/// `a` where `condition` (bool) holds, else `b`; the three broadcast against each other to the shape of the result, a and b are promoted
/// to one type.
Value select(Operand condition, Operand a, Operand b) {
  std::tie(a, b) = match("select", a, b);
  Dims shape = broadcast_shapes("select", condition.shape(), a.shape());
  return select_op({}, broadcast_to(condition, shape), broadcast_to(a, shape), broadcast_to(b, shape));
}

/// `x` with elements of another type, in the same shape: rounds half to even; float to integer truncates, saturates, and NaN gives 0;
/// integers wrap.
Value cast(Operand x, DType to) { return x.dtype() == to ? x : cast_op({to}, x); }

/// The same bits read as another type. Of the same width the shape stays; narrower elements stand along a new last axis, the lowest bits
/// first, and a last axis of them becomes one wider element. Throws Error when that axis has another size, and for bool and complex numbers
/// of other widths.
Value bitcast(Operand x, DType to) {
  const bool has_words = !is_bool(x.dtype()) && !is_bool(to) && !is_complex(x.dtype()) && !is_complex(to);
  const int from_bits = info(x.dtype()).bits, to_bits = info(to).bits;
  if (has_words && from_bits > to_bits) return split_into_words(x, to);
  if (has_words && from_bits < to_bits) return joined_from_words(x, to);
  return x.dtype() == to ? x : bitcast_op({to}, x);
}

/// A complex value from its parts, both f32 or both f64.
Value complex(Operand re, Operand im) {
  std::tie(re, im) = match("complex", re, im);
  return complex_op({}, re, im);
}

/// The real part of a complex value.
Value real(Operand z) { return real_op({}, z); }

/// The imaginary part of a complex value.
Value imag(Operand z) { return imag_op({}, z); }

/// The complex conjugate; real values of any type stay as they are.
Value conj(Operand z) { return is_complex(z.dtype()) ? conj_op({}, z) : Value(z); }

}  // namespace rlx
