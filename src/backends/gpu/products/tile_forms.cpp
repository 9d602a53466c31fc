// Which tiles a product can be computed by.
#include <algorithm>
#include <array>
#include <limits>

#include "backends/gpu/products/product_text.h"

namespace rlx::gpu {
namespace {

using Kind = TileForm::Kind;

// Rates are those of large products on an H100, in hundreds of TFLOP/s.
constexpr std::array forms_of_f32{TileForm{Kind::f32, 128, 128, 2, 1, 0.36}, TileForm{Kind::f32, 64, 64, 2, 1, 0.25}};
constexpr std::array forms_of_warps{TileForm{Kind::warps, 128, 128, 3, 1, 2.1}, TileForm{Kind::warps, 64, 64, 4, 1, 1.3},
                                    TileForm{Kind::warps, 32, 32, 6, 8, 1.0}};
constexpr std::array forms_of_groups{TileForm{Kind::groups, 128, 256, 4, 1, 7.6}, TileForm{Kind::groups, 128, 128, 5, 1, 6.2},
                                     TileForm{Kind::groups, 128, 64, 6, 1, 3.6}};

/// Whether a copy engine can address an operand: by distances of whole 16 bytes.
bool has_boxes(const Product& product, const View& view, const Dim& stride, Dim ProductAxis::* item_stride) {
  constexpr std::int64_t elements = 8, most_extent = std::numeric_limits<std::int32_t>::max();
  const auto is_whole = [](const Dim& size) { return Dim::exact_div(size, elements).has_value() && !(size == Dim(0)); };
  if (!view.offset.is_static() || view.offset.value() % elements != 0 || !is_whole(stride)) return false;
  if (std::max({product.rows.extent.upper(), product.columns.extent.upper(), product.depth.extent.upper()}) > most_extent) return false;
  return std::ranges::all_of(product.items,
                             [&](const ProductAxis& axis) { return is_whole(axis.*item_stride) && axis.extent.upper() <= most_extent; });
}

bool suits_groups(const Product& product) {
  return product.items.size() <= 1 && product.depth.extent.lower() >= 1 &&
         has_boxes(product, product.a, product.a_stride(), &ProductAxis::a_stride) &&
         has_boxes(product, product.b, product.b_stride(), &ProductAxis::b_stride);
}

}  // namespace

std::vector<TileForm> tile_forms(const Product& product, const Caps& caps) {
  if (product.element == f32) return {forms_of_f32.begin(), forms_of_f32.end()};
  std::vector<TileForm> all(forms_of_warps.begin(), forms_of_warps.end());
  if (product.element != i8 && caps.multiplies_in_groups && suits_groups(product))
    all.insert(all.end(), forms_of_groups.begin(), forms_of_groups.end());
  return all;
}

}  // namespace rlx::gpu
