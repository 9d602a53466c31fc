// Numbers on devices of WebGPU, whose compilers take them for real ones: what is infinite, NaN, zero or rounded is as on the CPU.
#include <cmath>
#include <limits>

#include "backends/webgpu_device.h"
#include "ir/reference.h"
#include "ops/values.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace webgpu_numbers_test {

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
const std::vector<float> numbers{0.0F,     -0.0F,   1.0F,         -1.0F,        0.5F,    1.5F,   2.5F,       -2.5F,  1e-3F,
                                 3.14159F, 1e10F,   -1e10F,       3e38F,        -3e38F,  inf,    -inf,       nan,    1e-30F,
                                 7.0F,     100.0F,  65519.9F,     65520.0F,     88.7F,   -87.3F, 300.F,      -129.F, 127.5F,
                                 0.999F,   1.0001F, 2147483648.F, 4294967296.F, 9.3e18F, 1e-6F,  16777217.F, -0.3F,  12345.678F};

/// Each number with each.
std::pair<Array, Array> pairs() {
  const auto count = static_cast<std::int64_t>(numbers.size());
  Array x(f32, {count * count}), z(f32, {count * count});
  for (std::int64_t i = 0; i < count * count; ++i) {
    x.set_double(i, numbers[static_cast<std::size_t>(i / count)]);
    z.set_double(i, numbers[static_cast<std::size_t>(i % count)]);
  }
  return {x, z};
}

class NumbersOnWebGpu : public WebGpuTest {
 protected:
  /// Results of the device are those of the reference, but for so many units in the last place; some devices flush subnormal numbers.
  void expect_reference(const std::function<Value(Value, Value)>& function, double units = 0) {
    const auto [x, z] = pairs();
    Graph graph;
    graph.output("y", function(graph.input("x", {x.size()}, f32), graph.input("z", {z.size()}, f32)));
    const Array wanted = evaluate(graph, {{"x", x}, {"z", z}}).at(0);
    const Array seen =
        Session(Device(backend()), {.cache_folder = std::filesystem::path(), .host = false}).compile(graph).run({{"x", x}, {"z", z}})[0];
    for (std::int64_t i = 0; i < wanted.size(); ++i) {
      const double a = seen.get_double(i), b = wanted.get_double(i);
      if ((a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b))) continue;
      ASSERT_LE(std::abs(a - b), units * std::abs(b) * 0x1p-23 + 0x1p-126)
          << x.get_double(i) << ", " << z.get_double(i) << ": " << a << ", must be " << b;
    }
  }
};

TEST_F(NumbersOnWebGpu, SumsAndProductsAreRounded) {
  expect_reference([](Value x, Value) { return (x + 12582912.0F) - 12582912.0F; });
  expect_reference([](Value x, Value z) { return (x + z) - x; });
  expect_reference([](Value x, Value) { return x * 0.0F; });
  expect_reference([](Value x, Value) { return x + 0.0F; });
  expect_reference([](Value x, Value) { return x - x; });
  expect_reference([](Value x, Value) { return (x * 1e30F) * 1e-30F; });
  expect_reference([](Value x, Value z) { return div(x, z); });
  expect_reference([](Value x, Value z) { return rem(x, z); });
}

TEST_F(NumbersOnWebGpu, NanAndSignsOfZeroStay) {
  expect_reference([](Value x, Value z) { return max(x, z); });
  expect_reference([](Value x, Value z) { return min(x, z); });
  expect_reference([](Value x, Value) { return relu(x); });
  expect_reference([](Value x, Value z) { return cast(ne(x, z), f32); });
  expect_reference([](Value x, Value) { return cast(ne(x, x), f32); });
  expect_reference([](Value x, Value z) { return select(lt(x, z), x, z); });
  expect_reference([](Value x, Value z) { return cast(le(x, z), f32); });
  expect_reference([](Value x, Value) { return sign(x); });
  expect_reference([](Value x, Value) { return neg(x); });
}

TEST_F(NumbersOnWebGpu, Functions) {
  using Unary = Value (*)(Operand);
  const Unary unary[] = {exp, expm1, tanh, sqrt, floor, round};
  for (const Unary function : unary) expect_reference([&](Value x, Value) { return function(x); }, 4);
  expect_reference([](Value x, Value) { return log(abs(x)); }, 4);
  expect_reference([](Value x, Value z) { return select(lt(abs(x), 1000.0F), sin(x) + cos(x), z); }, 16);
  expect_reference([](Value x, Value z) { return pow(abs(x), z); }, 4);
}

/// A driver may compile a kernel anew for the number at which its loop ends, and take what it then knows for constants.
TEST_F(NumbersOnWebGpu, FunctionsAroundALoopWhoseEndIsAnInput) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 4)}, f32);
  graph.output("y", tanh(0.25F * sum(x * cos(x), {0})));
  const Executable program = Session(Device(backend()), {.cache_folder = std::filesystem::path(), .host = false}).compile(graph);
  for (const std::int64_t count : {1, 2, 4}) {
    Doubles values{2.0, 0.3F, -1.2F, 3.1F};
    values.resize(static_cast<std::size_t>(count));
    double total = 0;
    for (const double v : values) total += v * std::cos(v);
    EXPECT_NEAR(program.run({{"x", floats({count}, values)}})[0].get_double(0), std::tanh(0.25 * total), 1e-6) << count;
  }
}

TEST_F(NumbersOnWebGpu, Casts) {
  for (const DType type : {i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, boolean})
    expect_reference([&](Value x, Value) { return cast(cast(x, type), f32); });
}

/// Of integers of 64 bits.
TEST_F(NumbersOnWebGpu, WideIntegers) {
  const auto wide = [](Value x, Value z, DType type) {
    const Value most = cast(x, type);
    return std::pair(most * 3, cast(z, type) + 12345);
  };
  using Binary = Value (*)(Operand, Operand);
  const Binary binary[] = {add, sub, mul, div, rem, max, min};
  for (const DType type : {i64, u64}) {
    const auto expect_bits = [&](const std::function<Value(Value, Value)>& function) {
      expect_reference([&](Value x, Value z) {
        const auto [a, b] = wide(x, z, type);
        const Value y = function(a, b);
        return cast(cast(y, u16), f32) + cast(cast(shr(y, y - y + 48), u16), f32);
      });
    };
    for (const Binary function : binary) expect_bits([&](Value a, Value b) { return function(a, b); });
    expect_bits([](Value a, Value b) { return shl(a, rem(b, b - b + 70)); });
    expect_bits([](Value a, Value b) { return shr(a, rem(b, b - b + 70)); });
    expect_bits([](Value a, Value) { return abs(a); });
  }
}

}  // namespace webgpu_numbers_test
}  // namespace rlx::test
