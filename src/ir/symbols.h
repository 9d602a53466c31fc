#pragma once
#include <span>
#include <string_view>

#include "rlx/array.h"
#include "rlx/type.h"

namespace rlx {

/// Collects the values of symbols from the shapes that are bound to inputs, and checks every shape against its type.
class SymbolBinder {
 public:
  /// Throws Error naming the input by its kind and name ("parameter" and "w"), the axis, the size seen and the size allowed. All arguments
  /// are read until `finish` returns.
  void bind(std::string_view kind, std::string_view name, const Type& type, const std::vector<std::int64_t>& shape);
  /// Checks sizes that could not be checked before all symbols were known. Throws Error.
  Bindings finish();

 private:
  struct Size {
    std::string_view kind, name;
    const Type& type;
    const std::vector<std::int64_t>& shape;
    std::size_t axis;
    std::string input() const;
  };
  bool solve(const Size& size);
  void check(const Size& size) const;

  Bindings bindings_;
  std::vector<Size> pending_;
};

}  // namespace rlx
