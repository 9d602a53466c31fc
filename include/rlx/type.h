#pragma once
#include <string>

#include "rlx/dim.h"
#include "rlx/dtype.h"

namespace rlx {

/// Element type and shape of a value; `f32[B,128]`.
struct Type {
  DType dtype = f32;
  Dims shape;

  int rank() const { return static_cast<int>(shape.size()); }
  const Dim& dim(std::int64_t axis) const { return shape.at(static_cast<std::size_t>(axis)); }
  Dim size() const { return product(shape); }
  bool is_static() const;
  std::string to_string() const;
  friend bool operator==(const Type&, const Type&) = default;
};

}  // namespace rlx
