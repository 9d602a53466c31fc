#pragma once
#include <functional>
#include <span>
#include <string_view>

#include "backends/consumer.h"
#include "backends/mlx/library/arrays.h"
#include "ir/op.h"

namespace rlx::mlx {

struct Results : std::vector<mx::array> {
  using std::vector<mx::array>::vector;
  Results(mx::array one) { push_back(std::move(one)); }  // NOLINT(google-explicit-constructor): most ops have one result
  Results(std::vector<mx::array> all) : std::vector<mx::array>(std::move(all)) {}  // NOLINT(google-explicit-constructor)
};

/// Runs a region of an op on operands as they are carried.
using RunInner = std::function<Results(const Region& region, std::vector<mx::array> operands)>;

/// What is made of an operand that is the same in all runs, once; nothing of one that is not.
using Once = std::function<Results(std::size_t operand, Results (*make)(const mx::array& operand))>;

/// A node of a run: what a row makes arrays of.
struct Call : NodeView {
  std::span<const mx::array> x;
  const RunInner& run_region;
  const Once& once;
  bool traced = false;  // what is computed is a function to be compiled: nothing is evaluated

  int axis() const { return static_cast<int>(NodeView::axis()); }
  /// A list of numbers or of sizes.
  std::vector<int> ints(std::string_view name) const;
  mx::Shape shape(std::size_t result = 0) const { return shape_of(sizes(result)); }
};

using Rule = Results (*)(const Call&);
using Rows = std::span<const Row<Rule>>;

// The table, by subject.
Rows scalar_rows();
Rows structure_rows();
Rows addressing_rows();
Rows reduction_rows();
Rows contraction_rows();
Rows control_rows();
Rows signal_rows();
Rows composite_rows();
Rows quantized_rows();
Rows recurrent_rows();

/// All of them.
const RowTable<Rule>& table();

/// `x` as another type, by MLX's own rules.
inline mx::array as(const mx::array& x, mx::Dtype dtype) { return x.dtype() == dtype ? x : mx::astype(x, dtype); }
/// A number of the type of `like`.
mx::array number_like(double value, const mx::array& like);
/// `interior` values between elements, and `lo` before them, cut to `shape`; a negative `lo` drops what lies before. Elements beyond the
/// borders are dropped first.
mx::array padded(const mx::array& x, std::span<const int> lo, std::span<const int> interior, const mx::Shape& shape, double value);
/// From parts of f32.
mx::array complex_of(const mx::array& re, const mx::array& im);
/// Integers of any type as i64: of u64, what that does not hold is its largest number.
mx::array signed_places(const mx::array& places);
/// The order of dimensions that undoes `perm`.
std::vector<int> inverse(const std::vector<int>& perm);
/// Places 0..last, whatever the integers say: MLX touches foreign memory where one is outside.
mx::array clamped(const mx::array& places, int last);
/// Of h' = a h + b along an axis: by step, the product of all a until it, and h where it began as 0.
std::pair<mx::array, mx::array> recurred(mx::array a, mx::array b, int axis);
/// The sum of narrow floats would lose bits: these are added in f32.
inline mx::array wide(const mx::array& x) { return x.dtype() == mx::float16 || x.dtype() == mx::bfloat16 ? as(x, mx::float32) : x; }

}  // namespace rlx::mlx
