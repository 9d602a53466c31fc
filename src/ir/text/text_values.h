#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/text/text_arrays.h"
#include "ir/text/text_lexer.h"
#include "rlx/op_types.h"

namespace rlx {

/// Reads types and attribute values of the text form; holds the symbols of the graph. Every error names line and column.
class ValueReader {
 public:
  ValueReader(Lexer& lexer, const FindArray& find) : lexer_(lexer), find_(find) {}

  /// (B<=32, S<=512)
  void declare_symbols();
  /// f32[B,4]
  Type type();
  /// A value of the field's kind; regions are read by the caller.
  Attr value(const Field& field);
  /// Throws Error for a type whose values no memory holds.
  void check_size(Position at, const Type& type) const;
  /// Digits, after an optional '-'.
  std::int64_t integer();

 private:
  std::int64_t magnitude(bool negative);
  double number();
  std::string text(const Field& field);
  DType dtype();
  Dim dim();
  Dim term(bool negative);
  Dim factor(bool negative);
  Dims dims();
  std::vector<std::int64_t> integers();
  Array array();
  Array elements(const std::vector<std::int64_t>& shape, DType dtype, std::int64_t count);
  Array bytes(const std::vector<std::int64_t>& shape, DType dtype, std::int64_t count);
  Array named_array(const Type& type);
  void element(Array& into, std::int64_t i);
  double component(bool narrow);
  template <class Number>
  Number parse(bool negative);

  Lexer& lexer_;
  const FindArray& find_;
  std::map<std::string, Dim, std::less<>> symbols_;
};

}  // namespace rlx
