#pragma once
#include <set>
#include <string>

namespace rlx {

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
