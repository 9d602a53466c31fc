// Layers that are one product, and what stands beside them: linear, lora and grouped products, one_hot, gates, dropout.
#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

struct Linear {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "linear";
  static constexpr std::string_view formula = "x w^T + bias: x (..., in), w (out, in), bias (out) when it is there";
  bool has_bias = false;
  static auto fields() { return Fields<&Linear::has_bias>{}; }
  static Value body(const Linear& op, In operands) {
    if (operands.size() != 2u + op.has_bias) fail("rlx.linear: {} operands, the attributes say {}", operands.size(), 2 + op.has_bias);
    Value x = operands[0], w = operands[1];
    if (x.rank() < 1 || w.rank() != 2 || !(x.dim(-1) == w.dim(1)))
      fail("rlx.linear: x {} and w {} do not fit (allowed: x [..., in], w [out, in])", x.type().to_string(), w.type().to_string());
    Value product = dot(x, w, {x.rank() - 1}, {1});
    if (!op.has_bias) return product;
    if (operands[2].rank() != 1 || !(operands[2].dim(0) == w.dim(0)))
      fail("rlx.linear: bias {} does not fit w {} (allowed: [out])", operands[2].type().to_string(), w.type().to_string());
    return product + operands[2];
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {2, 3, 8}}}, {{f32, {5, 8}}}, {{f32, {5}}}}, attrs_of(Linear{true}), 4e-6},
            {{{{f32, {8}}}, {{f32, {5, 8}}}}, attrs_of(Linear{false}), 4e-6},
            {{{{bf16, {3, 8}}}, {{bf16, {5, 8}}}, {{bf16, {5}}}}, attrs_of(Linear{true}), 4e-6},
            {{{{f64, {3, 8}}}, {{f64, {5, 8}}}}, attrs_of(Linear{false}), 4e-6}};
  }
};
const Op<Linear> linear_op;

struct LoraMatmul {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "lora_matmul";
  static constexpr std::string_view formula = "x w + scale * (x a) b: x (..., k), w (k, n), a (k, r), b (r, n) (Hu et al. 2021)";
  double scale = 1;
  static auto fields() { return Fields<&LoraMatmul::scale>{}; }
  static Value body(const LoraMatmul& op, Value x, Value w, Value a, Value b) { return matmul(x, w) + matmul(matmul(x, a), b) * op.scale; }
  static std::vector<Sample> samples() {
    return {{{{{f32, {4, 8}}}, {{f32, {8, 5}}}, {{f32, {8, 2}}}, {{f32, {2, 5}}}}, attrs_of(LoraMatmul{0.5}), 4e-6},
            {{{{f32, {2, 3, 8}}}, {{f32, {8, 5}}}, {{f32, {8, 2}}}, {{f32, {2, 5}}}}, attrs_of(LoraMatmul{2}), 4e-6}};
  }
};
const Op<LoraMatmul> lora_matmul_op;

struct GroupedMatmul {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "grouped_matmul";
  static constexpr std::string_view formula =
      "row m of x (M, K) times matrix expert[m] of w (E, K, N); expert (M) of integers, clamped to 0..E-1";
  static constexpr std::array<int, 1> integer_operands{2};
  static auto fields() { return Fields<>{}; }
  static Value body(const GroupedMatmul&, Value x, Value w, Value expert) {
    if (x.rank() != 2 || w.rank() != 3 || expert.rank() != 1 || !is_integer(expert.dtype()) || !(x.dim(1) == w.dim(1)) ||
        !(x.dim(0) == expert.dim(0)))
      fail("rlx.grouped_matmul: x {}, w {}, expert {} do not fit (allowed: x [M, K], w [E, K, N], expert [M] of integers)",
           x.type().to_string(), w.type().to_string(), expert.type().to_string());
    return dot(x, take(w, expert, 0), {1}, {1}, {0}, {0});
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {6, 4}}}, {{f32, {3, 4, 5}}}, {{i32, {6}}, 0, 2}}, {}, 4e-6},
            {{{{bf16, {6, 4}}}, {{bf16, {3, 4, 5}}}, {{i64, {6}}, 0, 2}}, {}, 4e-6}};
  }
};
const Op<GroupedMatmul> grouped_matmul_op;

struct OneHot {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "one_hot";
  static constexpr std::string_view formula =
      "1 where the position on a new last axis of size `depth` is ids[...], else 0; all 0 for an id outside";
  std::int64_t depth = 1;
  DType dtype = f32;
  static auto fields() { return Fields<&OneHot::depth, &OneHot::dtype>{}; }
  static Value body(const OneHot& op, Value ids) {
    if (!is_integer(ids.dtype())) fail("rlx.one_hot: ids {} (allowed: integers)", ids.type().to_string());
    if (op.depth < 0) fail("rlx.one_hot: depth {} (allowed: >= 0)", op.depth);
    Dims shape = ids.shape();
    shape.push_back(1);
    Value wide = cast(ids, info(ids.dtype()).bits < 32 ? i32 : ids.dtype());  // so that every position below depth can be counted
    return cast(eq(reshape(wide, shape), iota(ids, {op.depth}, wide.dtype(), 0)), op.dtype);
  }
  static std::vector<Sample> samples() {
    return {{{{{i32, {2, 3}}, -1, 5}}, attrs_of(OneHot{5, f32}), 0, false},
            {{{{i64, {4}}, 0, 4}}, attrs_of(OneHot{5, bf16}), 0, false},
            {{{{u8, {4}}, 0, 4}}, attrs_of(OneHot{300, boolean}), 0, false},
            {{{{i32, {}}, 0, 4}}, attrs_of(OneHot{5, i32}), 0, false}};
  }
};
const Op<OneHot> one_hot_op;

struct SwiGlu {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "swiglu";
  static constexpr std::string_view formula = "silu(gate) * up (Shazeer 2020)";
  static auto fields() { return Fields<>{}; }
  static Value body(const SwiGlu&, Value gate, Value up) {
    check_float(name, gate);
    return cast(silu(widen(gate)) * widen(up), gate.dtype());
  }
  static std::vector<Sample> samples() { return elementwise_samples({}, -3, 3, true, 2); }
};
const Op<SwiGlu> swiglu_op;

struct GeGlu {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "geglu";
  static constexpr std::string_view formula = "gelu(gate) * up, gelu by erf or, with `tanh_form`, by tanh (Shazeer 2020)";
  bool tanh_form = false;
  static auto fields() { return Fields<&GeGlu::tanh_form>{}; }
  static Value body(const GeGlu& op, Value gate, Value up) {
    check_float(name, gate);
    Value wide = widen(gate);
    return cast((op.tanh_form ? gelu_tanh(wide) : gelu(wide)) * widen(up), gate.dtype());
  }
  static std::vector<Sample> samples() {
    auto all = elementwise_samples(attrs_of(GeGlu{false}), -3, 3, true, 2),
         more = elementwise_samples(attrs_of(GeGlu{true}), -3, 3, true, 2);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};
const Op<GeGlu> geglu_op;

struct Dropout {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "dropout";
  static constexpr std::string_view formula = "x / (1 - rate) where uniform >= rate, else 0";
  double rate = 0.5;
  static auto fields() { return Fields<&Dropout::rate>{}; }
  static Value body(const Dropout& op, Value x, Value uniform) {
    check_float(name, x);
    if (!(op.rate >= 0 && op.rate <= 1)) fail("rlx.dropout: rate {} (allowed: 0..1)", op.rate);
    const double kept = op.rate < 1 ? 1 / (1 - op.rate) : 0;
    return select(ge(uniform, like(uniform, op.rate)), x * kept, like(x, 0));
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {4, 6}}}, {{f32, {4, 6}}, 0, 1}}, attrs_of(Dropout{0.3}), 1e-6, false},
            {{{{bf16, {4, 6}}}, {{f32, {4, 6}}, 0, 1}}, attrs_of(Dropout{0.5}), 0, false}};
  }
};
const Op<Dropout> dropout_op;

}  // namespace

/// x w^T + bias: x (..., in), w (out, in) as PyTorch keeps it, bias (out) or null; operands are promoted.
Value linear(Operand x, Operand w, Operand bias /*= {}*/) { return bias ? linear_op({true}, x, w, bias) : linear_op({false}, x, w); }
/// x w + scale * (x a) b: a product with a low-rank correction. x (..., k), w (k, n), a (k, r), b (r, n).
Value lora_matmul(Operand x, Operand w, Operand a, Operand b, double scale /*= 1*/) { return lora_matmul_op({scale}, x, w, a, b); }
/// Row m of x (M, K) times matrix expert[m] of w (E, K, N), giving (M, N): the product of a mixture of experts. expert holds M integers.
Value grouped_matmul(Operand x, Operand w, Operand expert) { return grouped_matmul_op({}, x, w, expert); }
/// 1 at position ids[...] of a new last axis of size `depth`, else 0: ids (integers of any shape) give (ids..., depth). A row whose id is
/// outside is 0. Throws Error when depth < 0.
Value one_hot(Operand ids, std::int64_t depth, DType dtype /*= f32*/) { return one_hot_op({depth, dtype}, ids); }
/// silu(gate) * up.
Value swiglu(Operand gate, Operand up) {
  std::tie(gate, up) = match("swiglu", gate, up);
  return swiglu_op({}, gate, up);
}
/// gelu(gate) * up, by erf or by its tanh approximation.
Value geglu(Operand gate, Operand up, bool tanh_form /*= false*/) {
  std::tie(gate, up) = match("geglu", gate, up);
  return geglu_op({tanh_form}, gate, up);
}
/// x with each element zeroed at probability `rate`, the others divided by 1 - rate. `uniform` holds a number in 0..1 for each element of
/// x, or broadcasts to it. Throws Error unless rate is in 0..1.
Value dropout(Operand x, Operand uniform, double rate) { return dropout_op({rate}, x, broadcast_to(uniform, x.shape())); }

}  // namespace rlx
