#pragma once
#include <cstdint>
#include <type_traits>

#include "rlx/dtype.h"

namespace rlx::cpu {

/// Unsigned integers in the order of elements that are stored as such bits: NaN of either sign is the largest and equals itself, -0 equals
/// 0.
template <class Bits>
class StoredRanks {
 public:
  explicit StoredRanks(DType type, bool descending)
      : infinity_(is_float(type) ? infinity(type) : all >> 1),
        base_(is_float(type) || is_signed_int(type) ? sign : 0),
        float_(is_float(type) ? all : 0),
        flip_(descending ? all : 0) {}

  // Both without branches, which signs in no order would mislead.
  Bits operator()(Bits bits) const {
    const auto magnitude = static_cast<Bits>(bits & static_cast<Bits>(~sign));
    const auto number = static_cast<Bits>(bits ^ (base_ | (mask(bits >> top) & float_)));
    const auto zeros_equal = static_cast<Bits>(number + (((bits ^ sign) | static_cast<Bits>(~float_)) == 0));
    return static_cast<Bits>((zeros_equal | mask(static_cast<Signed>(magnitude) > static_cast<Signed>(infinity_))) ^ flip_);
  }
  /// The element of a rank; of zeros and of NaNs one.
  Bits element(Bits rank) const {
    const auto increasing = static_cast<Bits>(rank ^ flip_);
    return static_cast<Bits>(increasing ^ (base_ | (static_cast<Bits>(~mask(increasing >> top)) & float_)));
  }
  /// Of floats, whose zeros and NaNs have one each.
  Bits zero() const { return static_cast<Bits>(sign ^ flip_); }
  Bits nan() const { return static_cast<Bits>(all ^ flip_); }

 private:
  using Signed = std::make_signed_t<Bits>;  // vectors compare these
  static constexpr auto all = static_cast<Bits>(~Bits{0}), sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));

  static constexpr int top = 8 * sizeof(Bits) - 1;
  /// All bits, or none.
  static Bits mask(Bits one) { return static_cast<Bits>(Bits{0} - one); }

  /// The largest that is no NaN; of f8e4m3 a finite one.
  static Bits infinity(DType type) {
    if (type == f8e4m3) return 0x7e;
    const int mantissa = type == f8e5m2 ? 2 : type == f16 ? 10 : type == bf16 ? 7 : type == f32 ? 23 : 52;
    return static_cast<Bits>(static_cast<std::uint64_t>(all >> 1) >> mantissa << mantissa);
  }

  Bits infinity_, base_, float_, flip_;
};

}  // namespace rlx::cpu
