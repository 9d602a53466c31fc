#include "backends/gpu/products/product_text.h"

#include <algorithm>

#include "backends/gpu/products/f32_tiles.h"
#include "backends/gpu/products/matrix_tiles.h"
#include "backends/gpu/products/tiles.h"
#include "backends/gpu/products/warp_products.h"

namespace rlx::gpu {
namespace {

constexpr int threads = 256;

class ProductText {
 public:
  ProductText(const Product& product, const TileForm& form, const Kernel& whole, const ProductLoops& loops, const Kernel& epilogue)
      : product_(product), form_(form), whole_(whole), loops_(loops), epilogue_(epilogue) {}

  KernelText text() const {
    const KernelText called = emit_cuda_function(epilogue_);
    std::string all = fmt::format("#ifndef once_{0}\n#define once_{0}\n{1}#endif\n", called.name, called.text);
    all += tiles;
    if (is_f32()) (all += f32_tiles);
    else (all += warp_products) += matrix_tiles;
    all += head() + places() + operands();
    all += fmt::format(
        "  const float* const tile = {}::run(on_chip, a, b, row, column);\n"
        "  for (int i = threadIdx.x; i < {}; i += {}) {{\n"
        "    const long long r = row + i / {}, c = column + i % {};\n"
        "    const float sum = tile[rlx_sum_place<{}>(i / {}, i % {})];\n"
        "    if (r < m && c < n) {};\n  }}\n}}\n",
        tile_type(), form_.rows * form_.columns, threads, form_.columns, form_.columns, form_.columns, form_.columns, form_.columns,
        call(called.name));
    KernelText named = named_by_hash(all, "k", grid());
    for (const KernelBuffer& buffer : whole_.buffers) named.element_bytes.push_back(std::max(info(buffer.dtype).bits / 8, 1));
    named.group = threads;
    named.on_chip_bytes = on_chip_bytes();
    return named;
  }

 private:
  bool is_f32() const { return form_.stages == 0; }
  const Dim& extent(int loop) const { return whole_.extent(loop); }
  std::vector<GridLoop> grid() const {
    std::vector<GridLoop> all;
    for (const int loop : loops_.items) all.push_back({loop, 1});
    all.push_back({loops_.row, form_.rows});
    all.push_back({loops_.column, form_.columns});
    return all;
  }
  int on_chip_bytes() const {
    const int sums = 4 * form_.rows * form_.columns;
    constexpr int depth = 64, f32_depth = 8, padded = 4;  // as the texts have them
    if (is_f32()) return std::max(sums, 4 * 2 * f32_depth * (form_.rows + form_.columns + 2 * padded));
    return std::max(sums, 2 * depth * form_.stages * (form_.rows + form_.columns));
  }

  std::string size(const Dim& dim) const {
    if (dim.is_static()) return fmt::format("{}ll", dim.value());
    std::string sum;
    for (const Dim::Term& term : dim.terms()) {
      sum += fmt::format("{}{}ll", sum.empty() ? "" : " + ", term.coefficient);
      for (const auto& symbol : term.symbols) {
        const auto at = std::ranges::find(whole_.symbols, symbol->name);
        sum += fmt::format(" * s{}", at - whole_.symbols.begin());
      }
    }
    return "(" + sum + ")";
  }
  std::string element_type() const { return is_f32() ? "float" : "unsigned short"; }
  static std::string memory_type(DType dtype) { return cuda_memory_type(dtype); }
  int buffer_of(ValueId value, bool written) const {
    const auto at = std::ranges::find_if(whole_.buffers, [&](const KernelBuffer& b) { return b.value == value && b.written == written; });
    if (at == whole_.buffers.end()) fail_internal("product: no buffer of {}", value.node);
    return static_cast<int>(at - whole_.buffers.begin());
  }

  std::string head() const {
    std::string all = fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(", threads, name_marker);
    for (std::size_t i = 0; i < whole_.buffers.size(); ++i)
      all += fmt::format("{}{}* b{}, ", whole_.buffers[i].written ? "" : "const ", memory_type(whole_.buffers[i].dtype), i);
    for (std::size_t i = 0; i < whole_.symbols.size(); ++i) all += fmt::format("const long long s{}, ", i);
    return all + "const long long positions) {\n  extern __shared__ __align__(128) unsigned char on_chip[];\n";
  }
  /// Where the tile lies.
  std::string places() const {
    std::string all = fmt::format("  const long long m = {}, n = {}, k = {};\n", size(product_.rows.extent), size(product_.columns.extent),
                                  size(product_.depth.extent));
    all += fmt::format("  long long row, column, item = rlx_tile_place<{}, {}>(m, n, row, column);\n", form_.rows, form_.columns);
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
    return fmt::format("  const rlx_operand<{}> {}{{b{} + {}, {}, {}, k}};\n", element_type(), name, buffer_of(view.value, false), at,
                       size(row_stride), rows);
  }
  std::string operands() const {
    return operand("a", product_.a, &ProductAxis::a_stride, product_.a_stride(), "m") +
           operand("b", product_.b, &ProductAxis::b_stride, product_.b_stride(), "n");
  }
  std::string tile_type() const {
    if (is_f32())
      return fmt::format("rlx_f32_tile<{}, {}, {}, {}>", form_.rows, form_.columns, product_.a_along_depth(), product_.b_along_depth());
    return fmt::format("rlx_tile<{}, {}, {}, {}, {}, {}>", product_.element == bf16 ? "rlx_bf16" : "rlx_f16", form_.rows, form_.columns,
                       product_.a_along_depth(), product_.b_along_depth(), form_.stages);
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

KernelText product_text(const Product& product, const TileForm& form, const Kernel& whole, const ProductLoops& loops,
                        const Kernel& epilogue) {
  return ProductText(product, form, whole, loops, epilogue).text();
}

}  // namespace rlx::gpu
