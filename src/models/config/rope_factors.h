#pragma once
#include <vector>

#include "rlx/op_types.h"

namespace rlx {

/// A divisor for each frequency of rope, as llama.cpp stores those of Llama 3.
std::vector<float> llama3_factors(const RopeOptions& rope);

/// Whether numbers are the same but for a few roundings to f32, which metadata are.
bool nearly_equal(double a, double b);
bool nearly(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace rlx
