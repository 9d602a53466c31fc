#pragma once
#include <set>
#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace rlx {

/// The type of an element in registers: integers of up to 32 bits are i32 or u32, those of 64 bits two words, the lower one first.
std::string wgsl_type(DType t);
std::string wgsl_constant(const Expr& constant);
/// The start value of an accumulator.
std::string wgsl_neutral(ReduceKind kind, DType t);

/// Prints scalar ops as expressions of WGSL, and collects the functions they call. Compilers of WGSL may take numbers for real ones: what
/// they must not see through is made with `zero`, a word of the table of sizes.
class WgslScalars {
 public:
  struct Operand {
    std::string value;
    DType dtype;
  };
  std::string emit(ScalarOp op, const std::vector<Operand>& args, DType result);
  std::string fma(const std::string& a, const std::string& b, const std::string& c);
  std::string combine(ReduceKind kind, const std::string& a, const std::string& b, DType t);
  std::string is_nan(const std::string& x);
  /// An integer of 64 bits as one of 32: what is far from `middle` is a bit less far. `middle` is then the number that its lower word is.
  std::string near(const std::string& x, std::int64_t middle);
  /// An element of up to 32 bits as the low bits of a word, of which the others are 0 here and anything there.
  std::string word(const std::string& value, DType t);
  std::string from_word(const std::string& word, DType t);

  /// Definitions of the functions that what was printed so far needs.
  std::string prelude() const;

 private:
  std::string call(const std::string& name, const std::string& arguments);
  std::string cast(const std::string& x, DType from, DType to);
  std::string bitcast(const std::string& x, DType from, DType to);
  std::string wrapped(const std::string& x, DType t);

  std::set<std::string> used_;
};

}  // namespace rlx
