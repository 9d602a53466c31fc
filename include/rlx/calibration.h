#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rlx/array.h"

namespace rlx {

/// What runs showed of a product's left operand: the least and the largest element at each place along its contracted axes, or of each
/// channel of a convolution's input; f32, both of one shape.
struct CalibratedRange {
  std::string product;  // as `explain` says it: "dot: f32[B,64] x f32[64,32]"
  Array least, largest;
};

/// The ranges of all products of a graph that are computed in 8-bit integers, in the order of its nodes. A session that is given one
/// computes their scales and offsets beforehand, instead of in every run; elements far beyond their range count as the last number of 8
/// bits, and NaN as some number.
struct Calibration {
  std::vector<CalibratedRange> ranges;
};

/// Writes a safetensors file: tensors "0 least" and "0 largest", and so on; which products those are, is metadata.
void save_calibration(const std::filesystem::path& path, const Calibration& calibration);

/// Reads what `save_calibration` wrote. Throws Error for another kind of file, and for ranges that are not finite or whose least element is
/// above the largest.
Calibration load_calibration(const std::filesystem::path& path);

}  // namespace rlx
