#pragma once
#include <string>

#include "emit/c_dialect.h"
#include "emit/scalar_text.h"

namespace rlx {

/// Names of element types in registers and in memory (bool: bool, 8 bits; narrow floats: float, 16 bits).
std::string c_register_type(const CDialect& dialect, DType t);
std::string c_memory_type(const CDialect& dialect, DType t);
std::string c_unsigned_type(const CDialect& dialect, int bits);
std::string c_constant(const CDialect& dialect, const Expr& constant);

/// Scalar ops as expressions of C.
class CScalars : public ScalarText {
 public:
  explicit CScalars(const CDialect& dialect) : dialect_(dialect) {}

  std::string fma(const std::string& a, const std::string& b, const std::string& c, DType t) override;
  std::string literal(const Expr& constant) const override { return c_constant(dialect_, constant); }
  std::string type_name(DType t) const override { return c_register_type(dialect_, t); }
  std::string prelude() const override;
  std::string from_memory(const std::string& raw, DType t);
  std::string to_memory(const std::string& value, DType t);
  /// See CDialect::dots.
  std::string add_dots(const std::string& sums, const std::string& codes, const std::string& x, std::int64_t less) {
    return call("rlx_dots", fmt::format("{}, {}, {}, {}", sums, codes, x, less));
  }

 private:
  std::string_view pattern(ScalarOp op, DType t) const override;
  Words words(DType t) const override;
  std::string cast(const std::string& x, DType from, DType to) override;
  std::string bitcast(const std::string& x, DType from, DType to) override;

  const CDialect& dialect_;
};

}  // namespace rlx
