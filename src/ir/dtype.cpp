#include "rlx/dtype.h"

#include <algorithm>

#include "rlx/error.h"

namespace rlx {

std::optional<DType> parse_dtype(std::string_view text) {
  for (std::size_t i = 0; i < dtype_table.size(); ++i)
    if (dtype_table[i].name == text) return static_cast<DType>(i);
  return std::nullopt;
}

namespace {

DType signed_of(int bits) { return bits <= 4 ? i4 : bits <= 8 ? i8 : bits <= 16 ? i16 : bits <= 32 ? i32 : i64; }

DType promote_integers(DType a, DType b) {
  if (info(a).kind == info(b).kind) return info(a).bits >= info(b).bits ? a : b;
  const DType s = is_signed_int(a) ? a : b, u = is_signed_int(a) ? b : a;
  return info(s).bits > info(u).bits ? s : signed_of(std::min(64, info(u).bits * 2));
}

DType promote_floats(DType a, DType b) {
  if (info(a).bits != info(b).bits) return info(a).bits > info(b).bits ? a : b;
  return info(a).bits == 8 ? f16 : f32;  // f8e4m3 with f8e5m2, f16 with bf16: neither holds the other
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_bool(a)) return b;
  if (is_bool(b)) return a;
  if (is_complex(a) || is_complex(b)) {
    const bool wide = a == c128 || b == c128 || a == f64 || b == f64;
    return wide ? c128 : c64;
  }
  if (is_float(a) && is_float(b)) return promote_floats(a, b);
  if (is_float(a) || is_float(b)) return is_float(a) ? a : b;
  return promote_integers(a, b);
}

}  // namespace rlx
