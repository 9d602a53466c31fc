// The kernels of all levels for products with weights in blocks, in one process: against decoded weights, and bit by bit against each
// other.
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>

#include "backends/block_cases.h"
#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/machine/denormals.h"
#include "backends/cpu/quantized/block_dot.h"
#include "backends/tile_trap.h"

namespace rlx::cpu {
namespace block_levels_test {

/// (rows, columns) = (rows, depth) x (columns, depth)^T, each row with the matrix of its group.
struct Operands {
  const BlockFormat& format;
  std::int64_t columns, depth, matrices;
  std::vector<float> x;
  std::vector<std::byte> blocks;
  RowGroups rows;

  Operands(const BlockFormat& type, std::int64_t m, std::int64_t n, std::int64_t k)
      : format(type),
        columns(n),
        depth(k),
        matrices(1),
        x(random_floats(m * k, 3)),
        blocks(random_blocks(type, n, k)),
        rows(RowGroups::one(m)) {}

  std::int64_t row_bytes() const { return depth / format.values * format.bytes; }
  BlockWeights weights() const { return {blocks.data(), row_bytes(), matrices, columns, depth}; }
  std::vector<float> decoded(std::int64_t matrix, std::int64_t column) const {
    std::vector<float> values(static_cast<std::size_t>(depth));
    format.decode(weights().row(matrix, column), values.data(), depth);
    return values;
  }
};

std::vector<float> product(const Operands& of, const BlockKernel& kernel) {
  const FlushDenormals flush;  // as in a run
  ThreadPool pool(2, flush_denormals);
  BlockPanels panels(kernel, of.weights());
  panels.pack(of.weights(), pool);
  std::vector<float> c(static_cast<std::size_t>(of.rows.rows() * of.columns), -1);
  BlockDotArgs args{of.rows, of.x.data(), {{&panels, c.data()}}, nullptr};
  const AlignedBuffer workspace(block_dot_workspace(args, pool.size()));
  args.workspace = workspace.data();
  block_dot(args, pool);
  return c;
}

/// A row of x as the op block_dot rounds it.
std::vector<double> rounded(const float* x, std::int64_t depth) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < depth; i += 32) {
    float most = 0;
    for (std::int64_t j = i; j < i + 32; ++j) most = std::max(most, std::abs(x[j]));
    for (std::int64_t j = i; j < i + 32; ++j) values.push_back(double{std::nearbyint(x[j] * (127 / most))} * (most / 127));
  }
  return values;
}

struct Level {
  std::string name;
  CpuLevel level;
  bool emulated = false;  // its instructions that this CPU lacks
};

std::vector<Level> levels() {
  std::vector<Level> found;
  for (const CpuLevel level : allowed_levels(cpu_features())) found.push_back({std::string(to_string(level)), level});
#if defined(__x86_64__) && defined(__linux__)
  if (best_level(cpu_features()) == CpuLevel::avx512 && cpu_features().avx512_vnni && !cpu_features().amx_tile)
    found.push_back({"amx, emulated", CpuLevel::amx, true});
#endif
  return found;
}

/// Those whose kernels have the same bits: the portable ones round twice where others fuse a multiplication and an addition.
std::vector<std::vector<Level>> levels_alike() {
  std::vector<std::vector<Level>> alike(1);
  for (Level& level : levels()) {
    const bool is_portable = block_kernel("Q4_0", level.level) == block_kernel("Q4_0", CpuLevel::portable);
    if (!is_portable && alike.size() == 1) alike.emplace_back();
    alike.back().push_back(std::move(level));
  }
  return alike;
}

std::vector<float> product(const Operands& of, const Level& level) {
  const BlockKernel& kernel = *block_kernel(of.format.name, level.level);
#if defined(__x86_64__) && defined(__linux__)
  if (level.emulated) {
    const test::TileTrap trap;
    const std::vector<float> c = product(of, kernel);
    EXPECT_EQ(trap.instructions() > 0, of.rows.largest() >= BlockKernel::many_rows);
    return c;
  }
#endif
  return product(of, kernel);
}

/// NaNs are all the same here.
bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

class BlockLevels : public testing::TestWithParam<std::string_view> {
 protected:
  const BlockFormat& format() const { return *find_block_format(GetParam()); }

  /// Whole and odd tiles, panels and passes of the depth; one and two rows with more panels than a kernel takes at a time.
  std::vector<Operands> cases() const {
    const std::int64_t block = format().values;
    return {{format(), 1, 16, block},
            {format(), 3, 37, 3 * block},
            {format(), 16, 1, 256},
            {format(), 33, 50, 3 * block},
            {format(), 47, 16, 256},
            {format(), 70, 33, 1024 + block},
            {format(), 32, 5, 2048 + 3 * block},
            {format(), 1, 277, 512 + block},
            {format(), 2, 277, 512 + block}};
  }
};

TEST_P(BlockLevels, AgreeWithDecodedWeights) {
  for (const Operands& of : cases()) {
    for (const Level& level : levels()) {
      const std::vector<float> c = product(of, level);
      for (std::int64_t column = 0; column < of.columns; ++column) {
        const std::vector<float> weights = of.decoded(0, column);
        for (std::int64_t row = 0; row < of.rows.rows(); ++row) {
          const std::vector<double> x = rounded(of.x.data() + row * of.depth, of.depth);
          double sum = 0;
          for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * double{weights[i]};
          // Terms are about 1 and up to 30; a sum of f32 errs by 6e-8 of what is summed at each step of 32.
          ASSERT_NEAR(c[static_cast<std::size_t>(row * of.columns + column)], sum, 1e-6 * static_cast<double>(of.depth + 256))
              << level.name << " " << row << ", " << column << " of " << of.rows.rows() << "x" << of.columns << "x" << of.depth;
        }
      }
    }
  }
}

TEST_P(BlockLevels, HaveTheSameBits) {
  for (const Operands& of : cases())
    for (const std::vector<Level>& alike : levels_alike()) {
      const std::vector<float> wanted = product(of, alike.front());
      for (const Level& level : alike)
        EXPECT_EQ(product(of, level), wanted) << level.name << " " << of.rows.rows() << "x" << of.columns << "x" << of.depth;
    }
}

/// One row, a few and a prompt: rows have the same bits whatever is multiplied beside them, at every level.
TEST_P(BlockLevels, HaveTheSameBitsForRowsAloneAndTogether) {
  const Operands all(format(), 70, 277, 512 + format().values);
  for (const Level& level : levels()) {
    const std::vector<float> wanted = product(all, level);
    for (const std::int64_t count : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 32, 33}) {
      const std::int64_t first = 70 - count;
      Operands some = all;
      some.x.assign(all.x.begin() + first * all.depth, all.x.end());
      some.rows = RowGroups::one(count);
      const std::vector<float> c = product(some, level);
      EXPECT_TRUE(std::equal(c.begin(), c.end(), wanted.begin() + first * all.columns)) << level.name << " " << count;
    }
  }
}

TEST_P(BlockLevels, HaveTheSameBitsForRowsInGroups) {
  Operands of(format(), 150, 3 * 21, 512);
  of.columns = 21, of.matrices = 3;
  of.rows = RowGroups::by_matrix(150, 3, [](std::int64_t row) { return row % 4 == 0 ? 0 : 1; });
  for (const std::vector<Level>& alike : levels_alike()) {
    const std::vector<float> wanted = product(of, alike.front());
    for (const Level& level : alike) EXPECT_EQ(product(of, level), wanted) << level.name;
    for (std::int64_t row = 0; row < 150; row += 37) {
      Operands alone = of;
      alone.x.assign(of.x.begin() + row * of.depth, of.x.begin() + (row + 1) * of.depth);
      alone.rows = RowGroups::by_matrix(1, 3, [&](std::int64_t) { return row % 4 == 0 ? 0 : 1; });
      const std::vector<float> c = product(alone, alike.back());
      EXPECT_TRUE(std::equal(c.begin(), c.end(), wanted.begin() + row * of.columns)) << alike.back().name << " " << row;
    }
  }
}

TEST_P(BlockLevels, ShowWhatIsNoNumber) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    const Operands of(format(), 35, 17, 512);
    Operands spoiled = of;
    spoiled.x[static_cast<std::size_t>(3 * of.depth + 300)] = bad;
    for (const Level& level : levels()) {
      const std::vector<float> clean = product(of, level), c = product(spoiled, level);
      for (std::size_t i = 0; i < c.size(); ++i) {
        if (i / 17 == 3) ASSERT_FALSE(std::isfinite(c[i])) << level.name << " " << i;
        else ASSERT_EQ(c[i], clean[i]) << level.name << " " << i;
      }
    }
  }
}

TEST_P(BlockLevels, TakeAnyBits) {
  Operands of(format(), 34, 200, 256);
  of.blocks = any_blocks(format(), of.columns, of.depth);
  std::vector<float> wanted;
  for (const std::vector<Level>& alike : levels_alike()) {
    wanted = product(of, alike.front());
    for (const Level& level : alike) {
      const std::vector<float> c = product(of, level);
      for (std::size_t i = 0; i < c.size(); ++i)
        ASSERT_TRUE(same_bits(c[i], wanted[i])) << level.name << " " << i << ": " << c[i] << " " << wanted[i];
    }
  }
  if (GetParam() == "MXFP4" || GetParam() == "Q8_K") return;  // whose scales are as large as f32: sums may be infinite where no weight is
  for (std::int64_t column = 0; column < of.columns; ++column) {
    const std::vector<float> weights = of.decoded(0, column);
    const bool finite = std::ranges::all_of(weights, [](float w) { return std::isfinite(w); });
    EXPECT_EQ(std::isfinite(wanted[static_cast<std::size_t>(column)]), finite) << column;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, BlockLevels,
                         testing::Values("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q8_K", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
                                         "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "TQ1_0",
                                         "TQ2_0", "MXFP4", "NVFP4"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace block_levels_test
}  // namespace rlx::cpu
