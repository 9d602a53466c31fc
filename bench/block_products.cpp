// Speed of products with weights in GGUF's block types, as they are stored: few rows, as shares of reading the weights from memory, and
// many, as shares of the peak of 8-bit integers. All limits are measured in the same run.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/peaks/peaks.h"
#include "backends/cpu/quantized/block_dot.h"
#include "cases/cases.h"
#include "quant/block_format.h"
#include "rlx/error.h"

namespace {

using namespace rlx;

struct Shape {
  std::int64_t n = 5632, k = 2048;
};

/// Weights by chance, as often as is needed for none of them to be in a cache when their turn comes again.
struct Weights {
  std::vector<std::byte> blocks;
  cpu::BlockWeights held;
  std::vector<cpu::BlockPanels> copies;
  std::size_t next = 0;

  Weights(const cpu::BlockKernel& kernel, const BlockFormat& format, const Shape& shape, std::size_t beyond_caches, ThreadPool& pool) {
    const std::int64_t row_bytes = shape.k / format.values * format.bytes;
    std::vector<float> row(static_cast<std::size_t>(shape.k));
    blocks.resize(static_cast<std::size_t>(shape.n * row_bytes));
    bench::fill(row, 3);
    for (std::int64_t i = 0; i < shape.n; ++i) {
      if (i < 64) format.encode(row.data(), nullptr, blocks.data() + i * row_bytes, shape.k);
      else std::copy_n(blocks.data() + i % 64 * row_bytes, row_bytes, blocks.data() + i * row_bytes);
      row[static_cast<std::size_t>(i % shape.k)] += 0.25f;
    }
    held = {blocks.data(), row_bytes, 1, shape.n, shape.k};
    while (copies.size() < 1 + beyond_caches / blocks.size()) copies.emplace_back(kernel, held).pack(held, pool);
  }

  const cpu::BlockPanels& turn() { return copies[next++ % copies.size()]; }
};

struct Product {
  std::shared_ptr<Weights> weights;
  std::vector<float> x, c;
  cpu::AlignedBuffer memory;
  cpu::BlockDotArgs args;

  Product(std::int64_t m, const Shape& shape, std::shared_ptr<Weights> w, ThreadPool& pool)
      : weights(std::move(w)), x(static_cast<std::size_t>(m * shape.k)), c(static_cast<std::size_t>(m * shape.n)) {
    bench::fill(x, 1);
    args = {cpu::RowGroups::one(m), x.data(), {{&weights->turn(), c.data()}}, nullptr};
    memory = cpu::AlignedBuffer(cpu::block_dot_workspace(args, pool.size()));
    args.workspace = memory.data();
  }

  void run(ThreadPool& pool) {
    args.products[0].weights = &weights->turn();
    cpu::block_dot(args, pool);
  }
};

bench::Case make_case(const BlockFormat& format, std::int64_t m, const Shape& shape, const std::shared_ptr<Weights>& weights,
                      ThreadPool& pool) {
  const auto product = std::make_shared<Product>(m, shape, weights, pool);
  bench::Case one;
  one.name = fmt::format("{} x {} x {}, {}", m, shape.n, shape.k, format.name);
  one.about = {{"kind", "block product"}, {"type", format.name}, {"m", m}, {"n", shape.n}, {"k", shape.k}};
  one.arithmetic = "int8";
  one.flops = 2.0 * static_cast<double>(m) * static_cast<double>(shape.n * shape.k);
  const std::int64_t row_bytes = shape.k / format.values * format.bytes;
  one.bytes_read = m <= 8 ? static_cast<double>(shape.n * row_bytes) : 0;
  one.run = [product, &pool] { product->run(pool); };
  return one;
}

std::vector<bench::Case> make_cases(const std::vector<std::string>& types, const std::vector<std::int64_t>& rows, const Shape& shape,
                                    bool cached, ThreadPool& pool) {
  std::vector<bench::Case> cases;
  for (const std::string& type : types) {
    const BlockFormat* const format = find_block_format(type);
    const cpu::BlockKernel* const kernel = format ? cpu::block_kernel(type, cpu::cpu_level()) : nullptr;
    if (!kernel) fail("--type: no products of '{}' as stored on this CPU", type);
    const auto weights = std::make_shared<Weights>(*kernel, *format, shape, cached ? 0 : cpu::bytes_beyond_caches(1), pool);
    for (const std::int64_t m : rows) cases.push_back(make_case(*format, m, shape, weights, pool));
  }
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Products with weights in GGUF's block types, as shares of this machine's limits");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  std::vector<std::string> types{"Q4_0", "Q4_K", "Q6_K", "Q8_0"};
  app.add_option("--type", types, "only these");
  std::vector<std::int64_t> rows{1, 8, 512};
  app.add_option("--rows", rows, "of x");
  Shape shape;
  app.add_option("-n", shape.n, "rows of weights");
  app.add_option("-k", shape.k, "values in each");
  bool cached = false;
  app.add_flag("--cached", cached, "one copy of the weights, which caches may hold");
  return bench::run_command(app, argc, argv, [&] {
    ThreadPool pool(options.threads);
    bench::run_cases(make_cases(types, rows, shape, cached, pool), options, pool);
  });
}
