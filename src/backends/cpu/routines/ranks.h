#pragma once
#include <cstdint>

#include "rlx/dtype.h"

namespace rlx::cpu {

/// Unsigned integers in the order of elements that are stored as such bits: NaN of either sign is the largest and equals itself, -0 equals
/// 0.
template <class Bits>
class Ranks {
 public:
  explicit Ranks(DType type, bool descending)
      : infinity_(infinity(type)),
        kind_(is_float(type)        ? Kind::floating
              : is_signed_int(type) ? Kind::with_sign
                                    : Kind::plain),
        flip_(descending ? all : 0) {}

  Bits operator()(Bits bits) const { return static_cast<Bits>(increasing(bits) ^ flip_); }

 private:
  enum class Kind : std::uint8_t { plain, with_sign, floating };
  static constexpr auto all = static_cast<Bits>(~Bits{0}), sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));

  /// The largest that is no NaN; of f8e4m3 a finite one.
  static Bits infinity(DType type) {
    if (type == f8e4m3) return 0x7e;
    const int mantissa = type == f8e5m2 ? 2 : type == f16 ? 10 : type == bf16 ? 7 : type == f32 ? 23 : 52;
    return static_cast<Bits>(static_cast<std::uint64_t>(all >> 1) >> mantissa << mantissa);
  }
  Bits increasing(Bits bits) const {
    const auto flipped = static_cast<Bits>(bits ^ sign), magnitude = static_cast<Bits>(bits & static_cast<Bits>(~sign));
    if (kind_ != Kind::floating) return kind_ == Kind::plain ? bits : flipped;
    if (magnitude > infinity_) return all;
    if (magnitude == 0) return sign;
    return bits & sign ? static_cast<Bits>(~bits) : flipped;
  }

  Bits infinity_;
  Kind kind_;
  Bits flip_;
};

}  // namespace rlx::cpu
