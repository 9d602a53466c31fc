#pragma once
#include <functional>
#include <span>
#include <utility>

#include "rlx/calibration.h"
#include "rlx/ops.h"

namespace rlx {

/// A product whose right operand is a weight, as what its int8 forms are made of.
struct WeightedProduct {
  using Ints = std::vector<std::int64_t>;
  using Rule = std::function<Value(Value)>;

  Value left, right;
  Ints left_places, right_places;  // pairs of contracted axes along which elements may be scaled one by one: of a conv, the channels
  Ints left_summed, right_summed;  // all axes that are summed over: the same, and of a conv the spatial ones
  bool meets_zeros = false;        // beside the elements of `left`: a conv, whose input is padded
  Rule padded = {};                // values like those of `left`, and the zeros around them
  std::function<Value(Value left, Value right)> multiply = {};  // padded ones
  Rule by_place = {}, by_weight = {};  // a value for each place, along the axes of the left and of the right operand
  Rule largest_at_places = {};         // of values like those of `right`
  Rule by_row = {}, by_column = {};    // what is left of an operand without its summed axes, along the axes of the result
};

/// A dot, or a conv that is a dot of windows, of these operands.
WeightedProduct weighted_product(const Node& product, std::span<const Value> operands);

/// The weight in f16, each column divided by its scale: 1 but where it has numbers beyond the largest f16. Scales are without the summed
/// axes, as by_column takes them.
struct HalfWeight {
  Value numbers, scales;
};
HalfWeight in_f16(const WeightedProduct& product);

/// The size of the largest weight at each place of the left operand. One that is no number has no say, so that it spoils its own column
/// only.
Value largest_weights(const WeightedProduct& product);

/// The product in 8-bit integers with a scale and an offset, found at run time, for each row of a dot and each image of a conv: the windows
/// of an image share them, as they overlap. `largest_weight`: of the product, or of all products that read the left operand: these then
/// round it alike, so that it is done once.
Value in_int8(const WeightedProduct& product, Value largest_weight);

/// The product in 8-bit integers with scales and offsets that follow from the largest weights and from what a calibration saw of the left
/// operand: one for each of its places. Elements beyond the 8 bits that these leave become the last of them.
Value in_int8(const WeightedProduct& product, Value largest_weight, const CalibratedRange& range);

/// The least and the largest element of the left operand at each of its places, which a calibration notes.
std::pair<Value, Value> range_of(const WeightedProduct& product);

}  // namespace rlx
