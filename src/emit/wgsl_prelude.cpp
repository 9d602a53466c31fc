// Functions that WGSL lacks.
#include <algorithm>
#include <array>
#include <string_view>

#include "emit/function_text.h"
#include "emit/wgsl_scalar.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr auto functions = std::to_array<std::string_view>({
    // -- f32
    "fn rlx_kept(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ zero); }",
    // Of what may be kept already: hidden twice by the same operation, a number is in the open again.
    "fn rlx_apart(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) + zero); }",
    "fn rlx_is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }",
    "fn rlx_high(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }",
    // What a sum, or a product, rounds off (Knuth; Dekker).
    R"(fn rlx_lost_of_sum(a: f32, b: f32, s: f32) -> f32 {
  let t = rlx_kept(s - a);
  return rlx_kept(a - rlx_kept(s - t)) + rlx_kept(b - t);
})",
    R"(fn rlx_lost_of_product(a: f32, b: f32, p: f32) -> f32 {
  let ah = rlx_high(a); let al = rlx_kept(a - ah); let bh = rlx_high(b); let bl = rlx_kept(b - bh);
  return rlx_kept(rlx_kept(rlx_kept(rlx_kept(ah * bh) - p) + rlx_kept(ah * bl)) + rlx_kept(al * bh)) + rlx_kept(al * bl);
})",
    R"(fn rlx_fma(a: f32, b: f32, c: f32) -> f32 {
  let p = rlx_kept(a * b); let s = rlx_kept(p + c);
  let exact = rlx_kept(s + rlx_kept(rlx_lost_of_sum(p, c, s) + rlx_lost_of_product(a, b, p)));
  return select(exact, s, (bitcast<u32>(s) & 0x7f800000u) == 0x7f800000u);
})",
    R"(fn rlx_max_f32(a: f32, b: f32) -> f32 {
  if (rlx_is_nan(a) || rlx_is_nan(b)) { return bitcast<f32>(zero ^ 0x7fc00000u); }
  if (a == b) { return select(a, b, (bitcast<u32>(a) >> 31u) != 0u); }
  return select(b, a, a > b);
})",
    R"(fn rlx_min_f32(a: f32, b: f32) -> f32 {
  if (rlx_is_nan(a) || rlx_is_nan(b)) { return bitcast<f32>(zero ^ 0x7fc00000u); }
  if (a == b) { return select(b, a, (bitcast<u32>(a) >> 31u) != 0u); }
  return select(b, a, a < b);
})",
    // By long division of the mantissas; subnormal numbers have the lowest exponent and no leading bit.
    R"(fn rlx_rem_f32(x: f32, z: f32) -> f32 {
  let a = bitcast<u32>(x) & 0x7fffffffu; let b = bitcast<u32>(z) & 0x7fffffffu; let sign = bitcast<u32>(x) & 0x80000000u;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) { return bitcast<f32>(zero ^ 0x7fc00000u); }
  if (a < b) { return x; }
  var e = max(a >> 23u, 1u); let f = max(b >> 23u, 1u);
  var m = (a & 0x7fffffu) | select(0u, 0x800000u, a >= 0x800000u); let n = (b & 0x7fffffu) | select(0u, 0x800000u, b >= 0x800000u);
  for (; e > f; e -= 1u) { m = (m % n) << 1u; }
  m %= n;
  for (; e > 1u && m < 0x800000u && m != 0u; e -= 1u) { m = m << 1u; }
  return bitcast<f32>(sign | select(m, (m & 0x7fffffu) | (e << 23u), m >= 0x800000u));
})",
    // -- integers of 64 bits
    "fn rlx_i32_to_i64(x: i32) -> vec2<u32> { return vec2<u32>(u32(x), u32(x >> 31u)); }",
    "fn rlx_u32_to_u64(x: u32) -> vec2<u32> { return vec2<u32>(x, 0u); }",
    R"(fn rlx_add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
})",
    "fn rlx_sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x)); }",
    R"(fn rlx_mul64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let al = a.x & 0xffffu; let ah = a.x >> 16u; let bl = b.x & 0xffffu; let bh = b.x >> 16u;
  let middle = ah * bl + ((al * bl) >> 16u); let other = al * bh + (middle & 0xffffu);
  return vec2<u32>(a.x * b.x, ah * bh + (middle >> 16u) + (other >> 16u) + a.x * b.y + a.y * b.x);
})",
    R"(fn rlx_near(x: vec2<u32>, middle: vec2<u32>) -> i32 {
  let d = rlx_sub64(x, middle);
  let near = (d.y == 0u && d.x < 0x40000000u) || (d.y == 0xffffffffu && d.x >= 0xc0000000u);
  return select(select(0x40000000, -0x40000000, i32(d.y) < 0), i32(d.x), near) + i32(middle.x);
})",
    "fn rlx_lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }",
    "fn rlx_lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool { return i32(a.y) < i32(b.y) || (a.y == b.y && a.x < b.x); }",
    "fn rlx_abs_u64(x: vec2<u32>) -> vec2<u32> { return x; }",
    "fn rlx_abs_i64(x: vec2<u32>) -> vec2<u32> { return select(x, rlx_sub64(vec2<u32>(), x), (x.y >> 31u) != 0u); }",
    "fn rlx_sign_u64(x: vec2<u32>) -> vec2<u32> { return vec2<u32>(select(0u, 1u, any(x != vec2<u32>())), 0u); }",
    "fn rlx_sign_i64(x: vec2<u32>) -> vec2<u32> { return select(rlx_sign_u64(x), vec2<u32>(0xffffffffu), (x.y >> 31u) != 0u); }",
    "fn rlx_count64(z: vec2<u32>) -> u32 { return select(min(z.x, 64u), 64u, z.y != 0u); }",
    R"(fn rlx_shl64(x: vec2<u32>, n: u32) -> vec2<u32> {
  if (n >= 64u) { return vec2<u32>(); }
  if (n >= 32u) { return vec2<u32>(0u, x.x << (n - 32u)); }
  return vec2<u32>(x.x << n, (x.y << n) | select(0u, x.x >> ((32u - n) & 31u), n > 0u));
})",
    R"(fn rlx_shr_u64(x: vec2<u32>, n: u32) -> vec2<u32> {
  if (n >= 64u) { return vec2<u32>(); }
  if (n >= 32u) { return vec2<u32>(x.y >> (n - 32u), 0u); }
  return vec2<u32>((x.x >> n) | select(0u, x.y << ((32u - n) & 31u), n > 0u), x.y >> n);
})",
    R"(fn rlx_shr_i64(x: vec2<u32>, n: u32) -> vec2<u32> {
  let flip = vec2<u32>(u32(i32(x.y) >> 31u));
  return rlx_shr_u64(x ^ flip, n) ^ flip;
})",
    // The quotient, and behind it the rest.
    R"(fn rlx_divided(x: vec2<u32>, z: vec2<u32>) -> vec4<u32> {
  var q = vec2<u32>(); var r = vec2<u32>();
  for (var i = 64u; i > 0u; i -= 1u) {
    let carry = (r.y >> 31u) != 0u;
    r = rlx_shl64(r, 1u);
    r.x |= rlx_shr_u64(x, i - 1u).x & 1u;
    q = rlx_shl64(q, 1u);
    if (carry || !rlx_lt_u64(r, z)) { r = rlx_sub64(r, z); q.x |= 1u; }
  }
  return vec4<u32>(q, r);
})",
    "fn rlx_div_u64(x: vec2<u32>, z: vec2<u32>) -> vec2<u32> { return rlx_divided(x, z).xy; }",
    "fn rlx_rem_u64(x: vec2<u32>, z: vec2<u32>) -> vec2<u32> { return rlx_divided(x, z).zw; }",
    R"(fn rlx_div_i64(x: vec2<u32>, z: vec2<u32>) -> vec2<u32> {
  if (all(z == vec2<u32>())) { return vec2<u32>(0xffffffffu); }
  let q = rlx_divided(rlx_abs_i64(x), rlx_abs_i64(z)).xy;
  return select(q, rlx_sub64(vec2<u32>(), q), ((x.y ^ z.y) >> 31u) != 0u);
})",
    R"(fn rlx_rem_i64(x: vec2<u32>, z: vec2<u32>) -> vec2<u32> {
  let r = rlx_divided(rlx_abs_i64(x), rlx_abs_i64(z)).zw;
  return select(r, rlx_sub64(vec2<u32>(), r), (x.y >> 31u) != 0u);
})",
    // The upper 32 bits that count; what is below them makes the last one odd, which rounds as all of it does.
    R"(fn rlx_u64_to_f32(x: vec2<u32>) -> f32 {
  if (x.y == 0u) { return f32(x.x); }
  let shift = 32u - countLeadingZeros(x.y); let top = rlx_shr_u64(x, shift);
  let exact = all(rlx_shl64(top, shift) == x);
  return f32(top.x | select(1u, 0u, exact)) * bitcast<f32>((127u + shift) << 23u);
})",
    R"(fn rlx_i64_to_f32(x: vec2<u32>) -> f32 {
  let size = rlx_u64_to_f32(rlx_abs_i64(x));
  return select(size, -size, (x.y >> 31u) != 0u);
})",
    R"(fn rlx_whole64(x: f32) -> vec2<u32> {
  let a = bitcast<u32>(x) & 0x7fffffffu; let e = a >> 23u; let m = vec2<u32>((a & 0x7fffffu) | 0x800000u, 0u);
  if (e < 127u) { return vec2<u32>(); }
  if (e < 150u) { return rlx_shr_u64(m, 150u - e); }
  return rlx_shl64(m, e - 150u);
})",
    R"(fn rlx_f32_to_i64(x: f32) -> vec2<u32> {
  if (rlx_is_nan(x)) { return vec2<u32>(); }
  if (x >= 9223372036854775808.0f) { return vec2<u32>(0xffffffffu, 0x7fffffffu); }
  if (x <= -9223372036854775808.0f) { return vec2<u32>(0u, 0x80000000u); }
  let whole = rlx_whole64(x);
  return select(whole, rlx_sub64(vec2<u32>(), whole), x < 0.0);
})",
    R"(fn rlx_f32_to_u64(x: f32) -> vec2<u32> {
  if (rlx_is_nan(x) || !(x > 0.0)) { return vec2<u32>(); }
  if (x >= 18446744073709551616.0f) { return vec2<u32>(0xffffffffu); }
  return rlx_whole64(x);
})",
});

/// "fn NAME(": NAME
std::string_view name_of(std::string_view function) { return function.substr(3, function.find('(') - 3); }

/// What other languages have, too; empty: nothing of that name.
std::string shared_function(const std::string& name) {
  constexpr FunctionWords words{"fn {name}(x: {A}) -> {R} {{\n", "fn {name}(x: {A}, z: {A}) -> {R} {{\n", "let",
                                "let {y} = bitcast<{T}>({x});", "{T}"};
  WgslScalars scalars;
  const FunctionText shared(words, scalars);
  for (const DType t : {i32, u32}) {
    if (name == fmt::format("rlx_f32_to_{}", rlx::name(t))) return shared.float_to_int(f32, t, "rlx_is_nan(x)");
    for (const bool quotient : {true, false})
      if (name == fmt::format("rlx_{}_{}", quotient ? "div" : "rem", rlx::name(t))) return shared.division(quotient, t);
  }
  return shared.narrow_float(name);
}

void collect(const std::string& name, std::set<std::string>& all) {
  const auto* const own = std::ranges::find(functions, std::string_view(name), name_of);
  const std::string function = own == functions.end() ? shared_function(name) : std::string(*own) + "\n";
  if (function.empty()) fail_internal("emit: WGSL has no function {}", name);
  if (!all.insert(function).second) return;
  for (std::size_t at = function.find("rlx_", 4); at != std::string::npos; at = function.find("rlx_", at + 4))
    collect(function.substr(at, function.find('(', at) - at), all);
}

}  // namespace

std::string wgsl_prelude(const std::set<std::string>& names) {
  std::set<std::string> all;
  for (const std::string& name : names) collect(name, all);
  std::string text;
  for (const std::string& function : all) text += function;
  return text;
}

}  // namespace rlx
