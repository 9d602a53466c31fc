// Prints a product with weights in blocks: fixed texts, and what its type of blocks, its sizes and its result add.
#include "backends/gpu/products/block_text.h"

#include <algorithm>

#include "backends/gpu/instructions/kept_numbers.h"
#include "backends/gpu/products/block_tiles.h"
#include "backends/gpu/products/matrix_tiles.h"
#include "backends/gpu/products/product_text.h"
#include "backends/gpu/products/tiles.h"
#include "emit/c_scalar.h"
#include "lowering/kernels_only/block_kernels.h"

namespace rlx::gpu {
namespace {

constexpr int threads = 256;

/// See block_tiles.h.
int on_chip_bytes(const BlockProduct& product, const BlockForm& form) {
  const int depth = form.slices > 1 ? 16 * form.slices : 64;
  const auto values = static_cast<int>(product.format.values), span = std::max(values, depth), turn = span / depth;
  const auto bytes = span / values * static_cast<int>(product.format.bytes);
  const int raw_row = ((bytes + 30) / 16 | 1) * 16, raw_stages = (form.stages + turn - 2) / turn + 1;
  const int panels = 2 * depth * (form.stages * product.pieces * form.rows + 2 * form.columns);
  return std::max(panels + raw_stages * form.columns * raw_row, 4 * form.rows * form.columns * form.slices);
}

class BlockText {
 public:
  BlockText(const BlockProduct& product, const BlockForm& form) : product_(product), form_(form) {
    kernel_.symbols = product.symbols;
    // Tiles of each matrix, of which the last is not full.
    const Dim rows = product.matrices ? product.rows + product.matrices->count * form.rows : product.rows;
    kernel_.loops = {kernel_.add_variable(rows), kernel_.add_variable(product.columns)};
    kernel_.buffers = {{product.left, bf16}, {product.blocks, u8}, {product.result, product.dtype, true}};
    if (product.matrices) kernel_.buffers.push_back({product.matrices->sorted, i32});
    first_table_ = kernel_.buffers.size();
  }

  GeneratedKernel kernel() {
    const Kernel run = block_run(product_.format.name, {product_.blocks, numbers()}, product_.tables);
    for (std::size_t i = 2; i < run.buffers.size(); ++i) kernel_.buffers.push_back(run.buffers[i]);
    const KernelText decoded = emit_cuda_function(run), stored = emit_cuda_function(storing());
    std::string text;
    for (const KernelText& called : {decoded, stored})
      text += fmt::format("#ifndef once_{0}\n#define once_{0}\n{1}#endif\n", called.name, called.text);
    ((((text += tiles) += warp_numbers()) += matrix_tiles) += block_tiles) += kernel_text(decoded.name, stored.name);
    KernelText named = named_by_hash(text, "k", {{kernel_.loops[0], form_.rows}, {kernel_.loops[1], form_.columns}});
    for (const KernelBuffer& buffer : kernel_.buffers) named.element_bytes.push_back(info(buffer.dtype).bits / 8);
    named.group = threads, named.on_chip_bytes = on_chip_bytes(product_, form_);
    std::vector<std::int64_t> first(kernel_.buffers.size());
    return {std::move(kernel_), std::move(named), nullptr, std::move(first)};
  }

 private:
  /// No value of the graph: a run of a block as numbers, and a sum.
  ValueId numbers() const { return {product_.result.node, 2}; }

  /// What is done with one sum.
  Kernel storing() const {
    Kernel kernel;
    kernel.tile = true;
    kernel.symbols = product_.symbols;
    kernel.loops = {kernel.add_variable(product_.rows), kernel.add_variable(product_.columns)};
    kernel.buffers = {{numbers(), f32}, {product_.result, product_.dtype, true}};
    Expr load;
    load.kind = Expr::Kind::load;
    load.index = 0, load.last = 0;
    const ExprId sum = kernel.add(std::move(load));
    const Index row = Index::variable(kernel.loops[0], product_.rows), column = Index::variable(kernel.loops[1], product_.columns);
    const ExprId value = product_.dtype == f32 ? sum : kernel.scalar(ScalarOp::cast, {sum}, product_.dtype);
    kernel.stores.push_back({1, row * Dim(product_.columns) + column, value});
    return kernel;
  }
  std::string size(const Dim& dim) const { return size_text(dim, kernel_.symbols); }

  std::string kernel_text(const std::string& decode, const std::string& store) const {
    std::string text = fmt::format("extern \"C\" __global__ void __launch_bounds__({}, 2) {}(", threads, name_marker), tables, symbols;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i)
      text += fmt::format("{}{}* b{}, ", kernel_.buffers[i].written ? "" : "const ",
                          c_memory_type(cuda_dialect(), kernel_.buffers[i].dtype), i);
    for (std::size_t i = first_table_; i < kernel_.buffers.size(); ++i) tables += fmt::format("b{}, ", i);
    for (std::size_t i = 0; i < kernel_.symbols.size(); ++i) {
      text += fmt::format("const long long s{}, ", i);
      symbols += fmt::format("s{}, ", i);
    }
    text += fmt::format(
        "const long long positions) {{\n  extern __shared__ __align__(128) unsigned char on_chip[];\n"
        "  const long long all = {}, n = {}, k = {};\n  long long row, column;\n",
        size(product_.rows), product_.columns, product_.depth);
    text += product_.matrices ? place_among_matrices() : place();
    text += fmt::format(
        "  const auto decode = [&](const unsigned char* block, unsigned run, float* to) {{\n"
        "    block = (const unsigned char*)__builtin_assume_aligned(block, {});\n"
        "    {}(block, to, {}run / 2, run / 2 + 1, run % 2, run % 2 + 1, 0, {}, 0);\n  }};\n",
        bound_of_blocks(product_), decode, tables, run_of_block);
    text += fmt::format(
        "  const float* const tile = rlx_block_tile<{}, {}, {}, {}, {}, {}, {}>::run_tile(on_chip, a, all * k, w, row, column, decode);\n",
        form_.rows, form_.columns, form_.stages, form_.slices, product_.pieces, product_.format.values, product_.format.bytes);
    return text + fmt::format(
                      "  for (int i = threadIdx.x; i < {0}; i += {1}) {{\n    const long long r = row + i / {2}, c = column + i % {2};\n"
                      "    const float sum = tile[rlx_sum_place<{2}>(i / {2}, i % {2})];\n"
                      "    if (r >= a.rows || c >= n) continue;\n    const long long to = {5};\n"
                      "    {3}(&sum, b2, {4}to, to + 1, c, c + 1, 0);\n  }}\n}}\n",
                      form_.rows * form_.columns, threads, form_.columns, store, symbols, product_.matrices ? "b3[first + r]" : "r");
  }
  /// Where the tile lies, and the operands there.
  std::string place() const {
    return fmt::format("  rlx_tile_place<{}, {}>(all, n, row, column);\n", form_.rows, form_.columns) + operands("0ll", "all", "0ll");
  }
  std::string place_among_matrices() const {
    const BlockMatrices& matrices = *product_.matrices;
    return fmt::format(
               "  const long long across = (n + {0} - 1) / {0};\n  const int* const begins = b3 + all;\n  long long tile_row = blockIdx.x "
               "/ across;\n"
               "  int matrix = 0;\n  for (; matrix < {2}; ++matrix) {{\n"
               "    const long long tiles = (begins[matrix + 1] - begins[matrix] + {1} - 1) / {1};\n"
               "    if (tile_row < tiles) break;\n    tile_row -= tiles;\n  }}\n  if (matrix == {2}) return;\n"
               "  const long long first = begins[matrix];\n  row = tile_row * {1}, column = blockIdx.x % across * {0};\n",
               form_.columns, form_.rows, matrices.count) +
           operands("first", "begins[matrix + 1] - first", fmt::format("matrix * {}", size(matrices.stride)));
  }
  std::string operands(std::string_view first, std::string_view rows, std::string_view matrix) const {
    return fmt::format(
        "  const rlx_operand<unsigned short> a{{(const unsigned short*)b0 + {} * k, k, {}, k}};\n"
        "  const rlx_blocks w{{b1 + {} + {}, {}, n, {}}};\n",
        first, rows, size(product_.offset), matrix, size(product_.stride), product_.depth / product_.format.values * product_.format.bytes);
  }

  const BlockProduct& product_;
  const BlockForm& form_;
  Kernel kernel_;
  std::size_t first_table_ = 0;
};

}  // namespace

GeneratedKernel sorting_kernel(const BlockMatrices& matrices, const std::vector<std::string>& symbols) {
  Kernel kernel;
  kernel.symbols = symbols;
  kernel.loops = {kernel.add_variable(1)};
  kernel.buffers = {{matrices.number, matrices.number_type}, {matrices.sorted, i32, true}};
  std::string text = fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(const {}* b0, int* b1, ", threads, name_marker,
                                 c_memory_type(cuda_dialect(), matrices.number_type));
  for (std::size_t i = 0; i < symbols.size(); ++i) text += fmt::format("const long long s{}, ", i);
  text += fmt::format(
      "const long long positions) {{\n  __shared__ int begins[{0} + 1];\n  const long long rows = {1};\n"
      "  const auto matrix = [&](long long r) {{ return b0[r] < 0 ? 0 : b0[r] < {0} ? (int)b0[r] : {0} - 1; }};\n"
      "  for (int i = threadIdx.x; i <= {0}; i += {2}) begins[i] = 0;\n  __syncthreads();\n"
      "  for (long long r = threadIdx.x; r < rows; r += {2}) atomicAdd(begins + matrix(r) + 1, 1);\n  __syncthreads();\n"
      "  if (threadIdx.x == 0)\n    for (int i = 0; i < {0}; ++i) begins[i + 1] += begins[i];\n  __syncthreads();\n"
      "  for (int i = threadIdx.x; i <= {0}; i += {2}) b1[rows + i] = begins[i];\n  __syncthreads();\n"
      "  for (long long r = threadIdx.x; r < rows; r += {2}) b1[atomicAdd(begins + matrix(r), 1)] = (int)r;\n}}\n",
      matrices.count, size_text(matrices.rows, symbols), threads);
  KernelText named = named_by_hash(text, "k", {{kernel.loops[0], 1}});
  named.element_bytes = {info(matrices.number_type).bits / 8, 4};
  named.group = threads;
  return {std::move(kernel), std::move(named), nullptr, {0, 0}};
}

int bound_of_blocks(const BlockProduct& product) {
  int bound = 16;
  const auto fits = [&](const Dim& bytes) { return Dim::exact_div(bytes, bound).has_value(); };
  while (!fits(product.format.bytes) || !fits(product.offset) || !fits(product.stride) ||
         (product.matrices && !fits(product.matrices->stride)))
    bound /= 2;
  return bound;
}

GeneratedKernel block_product_kernel(const BlockProduct& product, const BlockForm& form) { return BlockText(product, form).kernel(); }

}  // namespace rlx::gpu
