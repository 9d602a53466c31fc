#pragma once
#include <set>
#include <string>

#include "emit/c_dialect.h"

namespace rlx {

/// Definitions of functions with these names, in the order of their names:
///   rlx_f32_to_f16, rlx_f16_to_f32, rlx_f32_to_bf16, rlx_bf16_to_f32   narrow floats as their 16 bits
///   rlx_{f32,f64}_to_INT                                               truncation; saturates, NaN gives 0
///   rlx_div_INT, rlx_rem_INT                                           truncating; x / 0 has all bits set, x rem 0 = x
///   rlx_max_{f32,f64}, rlx_min_...                                     NaN wins; -0 is below +0
///   rlx_bits_A_B                                                       the same bits as another type of the same width
std::string c_prelude(const CDialect& dialect, const std::set<std::string>& names);

}  // namespace rlx
