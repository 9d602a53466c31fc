#pragma once
#include <span>
#include <string_view>

#include "rlx/array.h"
#include "rlx/type.h"

namespace rlx {

/// Collects the values of symbols from the shapes that are bound to inputs, and checks every shape against its type.
class SymbolBinder {
 public:
  /// Throws Error naming `input` ("parameter 'w'"), the axis, the size seen and the size allowed.
  void bind(std::string_view input, const Type& type, const std::vector<std::int64_t>& shape);
  /// Checks sizes that could not be checked before all symbols were known. Throws Error.
  Bindings finish();

 private:
  struct Pending {
    std::string input;
    Type type;
    std::vector<std::int64_t> shape;
    std::size_t axis;
  };
  bool solve(const Pending& size);
  void check(const Pending& size) const;
  [[noreturn]] void mismatch(const Pending& size, std::int64_t wanted) const;

  Bindings bindings_;
  std::vector<Pending> pending_;
};

}  // namespace rlx
