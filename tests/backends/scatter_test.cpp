// Scatters as sessions compute them, bit by bit beside the reference: sums of small integers have one answer in every type.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "backends/dummy_device.h"
#include "ops/values.h"
#include "passes/kernels_only.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace scatter_test {

struct Layout {
  std::string name;
  Dims x, indices, updates;
  GatherNumbers numbers;
};

const Layout layouts[] = {
    {"rows", {40, 24}, {300, 1}, {300, 24}, {{1}, {0}, {0}}},
    {"rows of rows", {11, 5, 24}, {4, 30, 1}, {4, 30, 5, 24}, {{2, 3}, {0}, {0}}},
    {"parts of rows", {40, 24}, {300, 1}, {300, 20}, {{1}, {0}, {0}}},
    {"rows longer than a block", {3, 40000}, {5, 1}, {5, 40000}, {{1}, {0}, {0}}},
    {"columns", {40, 24}, {300, 1}, {40, 300}, {{0}, {1}, {1}}},
    {"points", {50, 40}, {30, 70, 2}, {30, 70}, {{}, {0, 1}, {0, 1}}},
    {"points by turned starts", {5, 4, 16}, {70, 2}, {70, 16}, {{1}, {0, 1}, {1, 0}}},
    {"along an axis", {30, 7}, {50, 7, 1}, {50, 7}, {{}, {0}, {0}, {1}, {1}}},
    {"along the last axis", {7, 30}, {7, 50, 1}, {7, 50}, {{}, {1}, {1}, {0}, {0}}},
    {"a batch with indices of its own", {3, 40, 24}, {3, 90, 1}, {3, 90, 24}, {{2}, {1}, {1}, {0}, {0}}},
    {"a batch with the same indices", {3, 40, 24}, {90, 1}, {3, 90, 24}, {{0, 2}, {1}, {1}}},
    {"windows that overlap", {40, 8}, {60, 1}, {60, 3, 8}, {{1, 2}, {}, {0}}},
    {"windows that overlap, offsets in front", {40, 8}, {60, 1}, {3, 60, 8}, {{0, 2}, {}, {0}}},
    {"windows in the middle", {6, 40, 3}, {4, 15, 1}, {4, 6, 15, 2}, {{1, 3}, {1}, {1}}},
    {"starts of whole axes", {6, 24}, {90, 2}, {90, 24}, {{1}, {0}, {0, 1}}},
    {"no starts", {6, 5}, {4, 0}, {4, 6, 5}, {{1, 2}, {}, {}}},
    {"no updates", {40, 24}, {0, 1}, {0, 24}, {{1}, {0}, {0}}},
    {"updates without elements", {40, 0}, {9, 1}, {9, 0}, {{1}, {0}, {0}}},
    {"one number", {}, {0}, {}, {{}, {}, {}}},
};

const DType types[] = {f64, f32, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128, boolean};

bool has_kind(DType type, ScatterKind kind) {
  const bool ordered = kind == ScatterKind::min || kind == ScatterKind::max;
  return !(is_complex(type) && ordered) && !(is_bool(type) && !ordered && kind != ScatterKind::set);
}

Array integers(DType type, const Dims& shape, double low, double high, std::mt19937& random) {
  const bool is_unsigned = is_unsigned_int(type) || is_bool(type);
  Array x = random_array({type, shape}, is_unsigned ? 0 : low, is_bool(type) ? 1 : high, random);
  if (is_float(type) || is_complex(type))
    for (std::int64_t i = 0; i < x.size(); ++i)
      x.set_complex(i, {std::round(x.get_complex(i).real()), std::round(x.get_complex(i).imag())});
  return x;
}

/// The reference multiplies real numbers as complex ones, which changes the signs of zeros.
void without_zeros(Array& x) {
  for (std::int64_t i = 0; i < x.size(); ++i)
    if (std::complex<double> z = x.get_complex(i); z.real() == 0 || z.imag() == 0)
      x.set_complex(i, {z.real() == 0 ? 1 : z.real(), z.imag() == 0 ? 1 : z.imag()});
}

struct Case {
  Layout layout;
  ScatterKind kind = ScatterKind::add;
  DType type = f32, index = i32;
  IndexMode mode = IndexMode::fill;
  bool filled = false;    // the operand is made of one number
  bool in_steps = false;  // also on a device that has no code for scatters
};

void expect_reference(const Case& c, const std::map<std::string, Array>& inputs) {
  Graph graph;
  const Value indices = graph.input("indices", c.layout.indices, c.index), updates = graph.input("updates", c.layout.updates, c.type);
  const Value x = graph.input("x", c.layout.x, c.type);
  graph.output("y", scatter(c.filled ? full(x, c.layout.x, 1, c.type) : x, indices, updates, c.layout.numbers, c.kind, c.mode));
  const Array wanted = evaluate(graph, inputs)[0];
  for (const int threads : {1, 2, 3}) {
    SessionOptions options = without_disk();
    options.threads = threads;
    expect_same_bytes(Session(Device::cpu(), options).compile(graph).run(feeds(inputs))[0], wanted);
  }
  if (!c.in_steps) return;
  static const Session device(dummy_device(), without_disk());
  const Executable steps = device.compile(graph);
  if (is_complex(c.type)) EXPECT_EQ(difference(steps.run(feeds(inputs))[0], wanted), 0);  // the signs of zeros depend on the order
  else expect_same_bytes(steps.run(feeds(inputs))[0], wanted);
  EXPECT_EQ(count_of(steps, "host"), 0U);
}

void expect_reference(const Case& c, std::mt19937& random) {
  SCOPED_TRACE(fmt::format("{} {} kind {} filled {}", c.layout.name, name(c.type), static_cast<int>(c.kind), c.filled));
  const double most = c.kind == ScatterKind::mul ? 1 : 2;
  Array x = integers(c.type, c.layout.x, -2, 2, random), updates = integers(c.type, c.layout.updates, -most, most, random);
  if (c.kind == ScatterKind::mul) without_zeros(x), without_zeros(updates);
  expect_reference(c, {{"x", x}, {"indices", integers(c.index, c.layout.indices, -2, 45, random)}, {"updates", updates}});
}

TEST(Scatter, EveryLayoutAndKind) {
  std::mt19937 random(1);
  for (const Layout& layout : layouts)
    for (const ScatterKind kind : {ScatterKind::set, ScatterKind::add, ScatterKind::mul, ScatterKind::min, ScatterKind::max})
      for (const DType type : {f32, bf16})
        expect_reference({layout, kind, type, i32, kind == ScatterKind::add ? IndexMode::fill : IndexMode::clip, type == f32, type == f32},
                         random);
}

TEST(Scatter, EveryType) {
  std::mt19937 random(2);
  for (const std::size_t layout : {0, 7})
    for (const DType type : types)
      for (const ScatterKind kind : {ScatterKind::set, ScatterKind::add, ScatterKind::mul, ScatterKind::min, ScatterKind::max})
        if (has_kind(type, kind)) expect_reference({layouts[layout], kind, type, i32, IndexMode::fill, false, layout == 7}, random);
}

TEST(Scatter, IndicesOfEveryTypeAtTheirEnds) {
  std::mt19937 random(3);
  for (const DType index : {i8, i16, i32, i64, u8, u16, u32, u64})
    for (const IndexMode mode : {IndexMode::clip, IndexMode::fill}) {
      SCOPED_TRACE(name(index));
      const Case c{layouts[0], ScatterKind::add, f32, index, mode, false, true};
      Array indices = integers(index, c.layout.indices, 0, 39, random);
      const int bits = info(index).bits;
      const auto greatest = ~std::uint64_t{0} >> (64 - bits + (is_signed_int(index) ? 1 : 0));
      for (std::int64_t i = 0; i < 20; ++i) indices.set_uint(i, i % 2 ? greatest : ~greatest);
      expect_reference(c, {{"x", integers(f32, c.layout.x, -2, 2, random)},
                           {"indices", indices},
                           {"updates", integers(f32, c.layout.updates, -2, 2, random)}});
    }
}

TEST(Scatter, ExtremesOfNaNAndZerosOfBothSigns) {
  std::mt19937 random(4);
  for (const DType type : {f64, f32, f16, bf16})
    for (const ScatterKind kind : {ScatterKind::min, ScatterKind::max}) {
      const Case c{layouts[7], kind, type, i32, IndexMode::fill, false, true};
      Array x = integers(type, c.layout.x, -1, 1, random), updates = integers(type, c.layout.updates, -1, 1, random);
      for (std::int64_t i = 0; i < updates.size(); i += 9) updates.set_double(i, i % 2 ? nan : -0.0);
      expect_reference(c, {{"x", x}, {"indices", integers(i32, c.layout.indices, 0, 29, random)}, {"updates", updates}});
    }
}

TEST(Scatter, SumsAreTakenInTheOrderOfTheUpdates) {
  // 1 is lost beside 2^24, and not before it: only one order gives these sums. bf16 is summed in f32 and rounded once.
  std::mt19937 random(5);
  const std::int64_t n = 6000, rows = 7, columns = 48;
  for (const DType type : {f32, bf16}) {
    Graph graph;
    const Value indices = graph.input("indices", {n, 1}, i32), updates = graph.input("updates", {n, columns}, type);
    graph.output("y", scatter(full(updates, {rows, columns}, 0, type), indices, updates, {{1}, {0}, {0}}, ScatterKind::add));
    const Array at = integers(i32, {n, 1}, 0, rows - 1, random);
    Array values = random_array({type, {n, columns}}, -1, 1, random);
    for (std::int64_t i = 0; i < values.size(); i += 5) values.set_double(i, i % 3 ? 0x1p24 : -0x1p24);
    std::vector<float> sums(static_cast<std::size_t>(rows * columns), 0);
    for (std::int64_t i = 0; i < n * columns; ++i)
      sums[static_cast<std::size_t>(at.get_int(i / columns) * columns + i % columns)] += static_cast<float>(values.get_double(i));
    Array wanted(type, {rows, columns});
    for (std::int64_t i = 0; i < wanted.size(); ++i) wanted.set_double(i, sums[static_cast<std::size_t>(i)]);
    for (const int threads : {1, 2, 3}) {
      const Session session(Device::cpu(), {.threads = threads});
      expect_same_bytes(session.compile(graph).run({{"indices", at}, {"updates", values}})[0], wanted);
    }
  }
}

TEST(Scatter, AGradientOfRowsNeedsNoMemoryBesidesItself) {
  Graph gradient;
  const Value at = gradient.input("ids", {5000, 1}, i32), updates = gradient.input("dy", {5000, 256}, f32);
  gradient.output("dx", scatter(zeros_like(gradient.input("table", {3000, 256}, f32)), at, updates, {{1}, {0}, {0}}, ScatterKind::add));
  const Executable program = Session(Device::cpu(), without_disk()).compile(gradient);
  EXPECT_EQ(program.arena_bytes(), 0);
}

TEST(Scatter, AnOperandThatNobodyElseReadsIsChangedWhereItLies) {
  Graph graph;
  const Value x = graph.input("x", {300, 256}, f32), at = graph.input("at", {500, 1}, i32),
              updates = graph.input("updates", {500, 256}, f32);
  graph.output("y", exp(scatter(sin(x), at, updates, {{1}, {0}, {0}}, ScatterKind::add)));
  const Executable program = Session(Device::cpu(), without_disk()).compile(graph);
  EXPECT_EQ(program.arena_bytes(), 300 * 256 * 4);
  std::mt19937 random(6);
  const std::map<std::string, Array> inputs{{"x", random_array({f32, {300, 256}}, -1, 1, random)},
                                            {"at", integers(i32, {500, 1}, 0, 299, random)},
                                            {"updates", random_array({f32, {500, 256}}, -1, 1, random)}};
  const Array wanted = evaluate(graph, inputs)[0];
  EXPECT_LE(difference(program.run(feeds(inputs))[0], wanted), 8 * 0x1p-23 * largest_magnitude(wanted));
}

}  // namespace scatter_test
}  // namespace rlx::test
