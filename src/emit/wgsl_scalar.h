#pragma once
#include <set>
#include <string>
#include <vector>

#include "emit/scalar_text.h"

namespace rlx {

/// Scalar ops as expressions of WGSL. Integers of up to 32 bits are i32 or u32, those of 64 bits two words, the lower one first. Compilers
/// of WGSL may take numbers for real ones: what they must not see through is made with `zero`, the place of a group in the dimension that
/// has only one. No word of the table of sizes: lavapipe compiles kernels anew for the values of uniforms.
class WgslScalars : public ScalarText {
 public:
  std::string emit(ScalarOp op, const std::vector<Operand>& args, DType result) override;
  std::string fma(const std::string& a, const std::string& b, const std::string& c, DType t) override;
  std::string literal(const Expr& constant) const override;
  std::string type_name(DType t) const override;
  std::string prelude() const override;
  std::string is_nan(const std::string& x);
  /// An integer of 64 bits as one of 32: what is far from `middle` is a bit less far. `middle` is then the number that its lower word is.
  std::string near(const std::string& x, std::int64_t middle);
  /// An element of up to 32 bits as the low bits of a word, of which the others are 0 here and anything there.
  std::string word(const std::string& value, DType t);
  std::string from_word(const std::string& word, DType t);

 private:
  std::string_view pattern(ScalarOp op, DType t) const override;
  std::string cast(const std::string& x, DType from, DType to) override;
  std::string bitcast(const std::string& x, DType from, DType to) override;
  std::string wrapped(const std::string& x, DType t) override;
};

/// Definitions of functions with these names, and of those that they call, in the order of their names. Integers of 64 bits are two words.
///   rlx_kept                                  a number as it was rounded: compilers do not see what it is a sum or product of
///   rlx_fma                                   rounded once, where WGSL's own rounds twice
///   rlx_f32_to_f16, rlx_f16_to_f32, ...bf16   narrow floats as the low 16 bits of a word
///   rlx_f32_to_INT                            truncation; saturates, NaN gives 0
///   rlx_div_INT, rlx_rem_INT                  truncating; x / 0 has all bits set, x rem 0 = x
///   rlx_rem_f32                               exact, as C's fmod
///   rlx_sin_f32, rlx_cos_f32, rlx_pow_f32     what has formulas in f64 elsewhere
///   rlx_max_f32, rlx_min_f32                  NaN wins; -0 is below +0
///   rlx_...64, rlx_..._i64, rlx_..._u64       arithmetic of 64 bits
std::string wgsl_prelude(const std::set<std::string>& names);

}  // namespace rlx
