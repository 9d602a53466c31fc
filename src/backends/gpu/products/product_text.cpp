#include "backends/gpu/products/product_text.h"

#include <algorithm>

#include "backends/gpu/instructions/warp_products.h"
#include "backends/gpu/instructions/warpgroup_products.h"
#include "backends/gpu/products/f32_tiles.h"
#include "backends/gpu/products/matrix_tiles.h"
#include "backends/gpu/products/tiles.h"
#include "backends/gpu/products/wide_tiles.h"
#include "emit/c_scalar.h"

namespace rlx::gpu {
namespace {

using Kind = TileForm::Kind;

constexpr int side = 64;  // of a box: 128 bytes

class ProductText {
 public:
  ProductText(const Product& product, const TileForm& form, const Kernel& whole, const ProductLoops& loops, const Kernel& epilogue)
      : product_(product), form_(form), whole_(whole), loops_(loops), epilogue_(epilogue) {}

  KernelText text() const {
    const KernelText called = emit_cuda_function(epilogue_);
    std::string all = fmt::format("#ifndef once_{0}\n#define once_{0}\n{1}#endif\n", called.name, called.text);
    all += tiles;
    if (form_.kind == Kind::f32) all += f32_tiles;
    else (all += warp_products) += form_.kind == Kind::warps ? matrix_tiles : warpgroup_products;
    if (in_groups()) (all += group_product(product_.element, form_.columns)) += wide_tiles;
    all += head() + (in_groups() ? all_tiles(called.name) : one_tile(called.name)) + "}\n";
    KernelText named = named_by_hash(all, "k", grid());
    for (const KernelBuffer& buffer : whole_.buffers) named.element_bytes.push_back(std::max(info(buffer.dtype).bits / 8, 1));
    named.group = threads();
    named.on_chip_bytes = on_chip_bytes();
    if (in_groups()) named.maps = maps(), named.symbols = whole_.symbols;
    return named;
  }

 private:
  bool in_groups() const { return form_.kind == Kind::groups; }
  int threads() const { return in_groups() ? 384 : 256; }
  const Dim& extent(int loop) const { return whole_.extent(loop); }
  std::vector<GridLoop> grid() const {
    if (in_groups()) return {{loops_.block, 1}};
    std::vector<GridLoop> all;
    for (const int loop : loops_.items) all.push_back({loop, 1});
    all.push_back({loops_.row, form_.rows});
    all.push_back({loops_.column, form_.columns});
    return all;
  }
  int on_chip_bytes() const {
    const int sums = 4 * form_.rows * form_.columns * form_.slices;
    const int depth = form_.slices > 1 ? 16 * form_.slices : 64;  // as the texts have it
    constexpr int f32_depth = 8, padded = 4;
    const int panels = 2 * depth * form_.stages * (form_.rows + form_.columns);
    if (in_groups()) return 1024 + panels + 8 * 16 * side * 4 + 2 * form_.stages * 8;
    if (form_.kind == Kind::warps) return std::max(sums, panels);
    return std::max(sums, 4 * form_.stages * f32_depth * (form_.rows + form_.columns + 2 * padded));
  }

  std::string size(const Dim& dim) const { return size_text(dim, whole_.symbols); }
  static std::string memory_type(DType dtype) { return c_memory_type(cuda_dialect(), dtype); }
  int buffer_of(ValueId value, bool written) const {
    const auto at = std::ranges::find_if(whole_.buffers, [&](const KernelBuffer& b) { return b.value == value && b.written == written; });
    if (at == whole_.buffers.end()) fail_internal("product: no buffer of {}", value.node);
    return static_cast<int>(at - whole_.buffers.begin());
  }

  std::string head() const {
    std::string all = fmt::format("extern \"C\" __global__ void __launch_bounds__({}, {}) {}(", threads(),
                                  form_.kind == Kind::warps ? 2 : 1, name_marker);
    for (std::size_t i = 0; i < whole_.buffers.size(); ++i)
      all += fmt::format("{}{}* b{}, ", whole_.buffers[i].written ? "" : "const ", memory_type(whole_.buffers[i].dtype), i);
    for (std::size_t i = 0; i < whole_.symbols.size(); ++i) all += fmt::format("const long long s{}, ", i);
    all += "const long long positions";
    if (in_groups()) all += ", const __grid_constant__ rlx_map a, const __grid_constant__ rlx_map b";
    all += fmt::format(") {{\n  extern __shared__ __align__({}) unsigned char on_chip[];\n", in_groups() ? 1024 : 128);
    return all + fmt::format("  const long long m = {}, n = {}, k = {};\n", size(product_.rows.extent), size(product_.columns.extent),
                             size(product_.depth.extent));
  }
  std::string one_tile(const std::string& called) const {
    return places() + operands() +
           fmt::format(
               "  const {5}* const tile = {0}::run(on_chip, a, b, row, column);\n"
               "  for (int i = threadIdx.x; i < {1}; i += {2}) {{\n"
               "    const long long r = row + i / {3}, c = column + i % {3};\n"
               "    const {5} sum = tile[rlx_sum_place<{3}>(i / {3}, i % {3})];\n"
               "    if (r < m && c < n) {4};\n  }}\n",
               tile_type(), form_.rows * form_.columns, threads(), form_.columns, call(called), product_.element == i8 ? "int" : "float");
  }
  /// One tile after the other.
  std::string all_tiles(const std::string& called) const {
    const std::string items = loops_.items.empty() ? "1ll" : size(extent(loops_.items[0]));
    return fmt::format(
        "  const auto store = [&](long long i0, long long r, long long c, float sum) {{ {}; }};\n"
        "  {}::run(on_chip, a, b, {}, m, n, k, store);\n",
        call(called), tile_type(), items);
  }
  BoxMap map(const View& view, bool along, const Dim& extent_of_rows, const Dim& stride, Dim ProductAxis::* item_stride, int width) const {
    BoxMap map{buffer_of(view.value, false), product_.element, view.offset.value(), {}, {stride, Dim(side)}, {side, along ? width : side}};
    map.extents = {along ? product_.depth.extent : extent_of_rows, along ? extent_of_rows : product_.depth.extent, Dim(1)};
    if (!product_.items.empty()) map.extents[2] = product_.items[0].extent, map.strides[1] = product_.items[0].*item_stride;
    return map;
  }
  std::vector<BoxMap> maps() const {
    const Product& p = product_;
    return {map(p.a, p.a_along_depth(), p.rows.extent, p.a_stride(), &ProductAxis::a_stride, form_.rows),
            map(p.b, p.b_along_depth(), p.columns.extent, p.b_stride(), &ProductAxis::b_stride, form_.columns)};
  }
  /// Where the tile lies.
  std::string places() const {
    std::string all =
        fmt::format("  long long row, column, item = rlx_tile_place<{}, {}>(m, n, row, column);\n", form_.rows, form_.columns);
    for (std::size_t i = loops_.items.size(); i-- > 0;) {
      const std::string extent_text = size(extent(loops_.items[i]));
      all += fmt::format("  const long long i{} = item % {};\n  item /= {};\n", i, extent_text, extent_text);
    }
    return all;
  }
  std::string operand(std::string_view name, const View& view, Dim ProductAxis::* stride, const Dim& row_stride,
                      std::string_view rows) const {
    std::string at = size(view.offset);
    for (std::size_t i = 0; i < product_.items.size(); ++i)
      if (const Dim& step = product_.items[i].*stride; !(step == Dim(0))) at += fmt::format(" + i{} * {}", i, size(step));
    const std::string type = form_.kind == Kind::f32 ? "float" : "unsigned short";
    const std::string_view pairs = product_.element == i8 ? " / 2" : "";  // which matrix units take for elements
    return fmt::format("  const rlx_operand<{0}> {1}{{(const {0}*)(b{2} + {3}), {4}{5}, {6}, k{5}}};\n", type, name,
                       buffer_of(view.value, false), at, size(row_stride), pairs, rows);
  }
  std::string operands() const {
    return operand("a", product_.a, &ProductAxis::a_stride, product_.a_stride(), "m") +
           operand("b", product_.b, &ProductAxis::b_stride, product_.b_stride(), "n");
  }
  std::string tile_type() const {
    const std::string along = fmt::format("{}, {}", product_.a_along_depth(), product_.b_along_depth());
    if (form_.kind == Kind::f32) return fmt::format("rlx_f32_tile<{}, {}, {}>", form_.rows, form_.columns, along);
    const std::string element = fmt::format("rlx_{}", name(product_.element));
    if (in_groups()) return fmt::format("rlx_wide_tiles<{}, {}, {}, {}>", element, form_.columns, along, form_.stages);
    return fmt::format("rlx_tile<{}, {}, {}, {}, {}, {}>", element, form_.rows, form_.columns, along, form_.stages, form_.slices);
  }
  /// The epilogue for one element: its tile is that alone.
  std::string call(const std::string& name) const {
    std::string all = name + "(";
    for (const KernelBuffer& buffer : epilogue_.buffers)
      all += buffer.value == product_.dot && !buffer.written ? "&sum, " : fmt::format("b{}, ", buffer_of(buffer.value, buffer.written));
    for (std::size_t i = 0; i < whole_.symbols.size(); ++i) all += fmt::format("s{}, ", i);
    const auto range = [&](const std::string& at) { all += fmt::format("{0}, {0} + 1, ", at); };
    for (std::size_t i = 0; i < loops_.items.size(); ++i) range(fmt::format("i{}", i));
    range("r"), range("c");
    return all + "0)";
  }

  const Product& product_;
  const TileForm& form_;
  const Kernel& whole_;
  const ProductLoops& loops_;
  const Kernel& epilogue_;
};

}  // namespace

std::string size_text(const Dim& dim, const std::vector<std::string>& symbols) {
  if (dim.is_static()) return fmt::format("{}ll", dim.value());
  std::string sum;
  for (const Dim::Term& term : dim.terms()) {
    sum += fmt::format("{}{}ll", sum.empty() ? "" : " + ", term.coefficient);
    for (const auto& symbol : term.symbols) {
      const auto at = std::ranges::find(symbols, symbol->name);
      sum += fmt::format(" * s{}", at - symbols.begin());
    }
  }
  return "(" + sum + ")";
}

KernelText product_text(const Product& product, const TileForm& form, const Kernel& whole, const ProductLoops& loops,
                        const Kernel& epilogue) {
  return ProductText(product, form, whole, loops, epilogue).text();
}

}  // namespace rlx::gpu
