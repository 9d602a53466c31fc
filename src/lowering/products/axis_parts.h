#pragma once
#include "lowering/products/product_axes.h"
#include "lowering/program_file/parts.h"

namespace rlx {

template <class Way>
void list_parts(Way& way, Of<Way, ProductAxis>& axis) {
  way("extent", axis.extent), way("a stride", axis.a_stride), way("b stride", axis.b_stride), way("c stride", axis.c_stride);
}

}  // namespace rlx
