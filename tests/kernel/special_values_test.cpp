// Every scalar op on every type that kernels compute, on all pairs of special values: by LLVM's code at every level of this machine and
// by the C dialect, as kernels run, against the reference.
#include <gtest/gtest.h>

#include <filesystem>

#include "backends/cpu/machine/cpu_features.h"
#include "backends/cpu/machine/denormals.h"
#include "kernel/graph_kernel.h"
#include "kernel/math/math.h"
#include "kernel/scalar_ops.h"

namespace rlx::test {
namespace {

/// NaN, infinities, zeros, the smallest and largest numbers, integers around the limits of types, values in the middle between two
/// narrower numbers or two integers, and arguments of functions that are hard: huge angles, neighbours of 1, ends of exp.
std::vector<double> special_floats(DType t) {
  std::vector<double> values{0,
                             1,
                             2,
                             3,
                             7,
                             10,
                             0.5,
                             1.5,
                             2.5,
                             1e-3,
                             0.75,
                             22,
                             85,
                             88.7,
                             89,
                             104,
                             709.7,
                             745,
                             1e4,
                             65504,
                             65519.9,
                             65520,
                             0x1p24,
                             0x1p31,
                             0x1p32,
                             0x1p46,
                             0x1p47,
                             0x1p53,
                             0x1p63,
                             0x1p64,
                             123456.7,
                             1e10,
                             1e15,
                             1e20,
                             3e38,
                             1e-30,
                             1e-8,
                             3.92,
                             1.57079632679489661923,
                             3.14159265358979323846,
                             0x1p-149 * 3};
  for (const double one : {1 + 0x1p-11, 1 + 0x1p-8, 1 + 3 * 0x1p-8, 1 + 3 * 0x1p-11, 1 + 0x1p-24, 1 + 0x1p-52, 1 - 0x1p-24})
    values.push_back(one);
  values.push_back(epsilon(t));
  values.push_back(1 + epsilon(t));
  values.push_back(1 - epsilon(t) / 2);
  values.push_back(smallest_normal(t));
  values.push_back(smallest_normal(t) * epsilon(t));
  values.push_back(smallest_normal(t) * (1 - epsilon(t)));
  values.push_back(largest_number(t));
  values.push_back(INFINITY);
  values.push_back(NAN);
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

/// Zero, the limits of the type, their neighbours, and numbers around every width that is shifted by.
std::vector<std::int64_t> special_integers(DType t) {
  std::vector<std::int64_t> values;
  const int bits = is_bool(t) ? 1 : info(t).bits;
  for (const int power : {0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 24, 31, 32, 53, 63}) {
    if (power > bits) continue;
    for (const std::uint64_t offset : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
      const std::uint64_t n = (std::uint64_t{1} << power) + offset;  // unsigned: wraps
      values.push_back(static_cast<std::int64_t>(n));
      values.push_back(static_cast<std::int64_t>(0 - n));
    }
  }
  for (const std::int64_t n : {100, 7, 2049, 257, 771}) values.push_back(n);
  return values;
}

/// Special values of the type, each once.
Array specials(DType t) {
  std::vector<Array> kept;
  const auto add = [&](const auto& set) {
    Array one(t, {1});
    set(one);
    for (const Array& other : kept)
      if (other == one) return;
    kept.push_back(one);
  };
  if (is_float(t)) {
    for (double x : special_floats(t)) add([&](Array& a) { a.set_double(0, x); });
  } else if (is_bool(t)) {
    for (int x : {0, 1}) add([&](Array& a) { a.set_double(0, x); });
  } else {
    for (std::int64_t x : special_integers(t)) add([&](Array& a) { a.set_int(0, x); });
  }
  Array all(t, {static_cast<std::int64_t>(kept.size())});
  const std::size_t bytes = all.bytes().size() / kept.size();
  for (std::size_t i = 0; i < kept.size(); ++i) std::memcpy(all.mutable_bytes().data() + i * bytes, kept[i].bytes().data(), bytes);
  return all;
}

/// Element i / n of the values where `first`, else element i % n, for all i < n * n.
Array grid(const Array& values, bool first) {
  const std::int64_t n = values.size();
  Array all(values.dtype(), {n * n});
  const std::size_t bytes = values.bytes().size() / static_cast<std::size_t>(n);
  for (std::int64_t i = 0; i < n * n; ++i)
    std::memcpy(all.mutable_bytes().data() + static_cast<std::size_t>(i) * bytes,
                values.bytes().data() + static_cast<std::size_t>(first ? i / n : i % n) * bytes, bytes);
  return all;
}

/// Numbers below the normal ones of their register, which is f32 for narrow floats.
bool is_denormal(DType t, double x) { return is_float(t) && x != 0 && std::fabs(x) < smallest_normal(register_type(t)); }

Array with_zeros_for_denormals(const Array& x) {
  Array y(x.dtype(), x.shape());
  std::memcpy(y.mutable_bytes().data(), x.bytes().data(), x.bytes().size());
  for (std::int64_t i = 0; is_float(x.dtype()) && i < x.size(); ++i)
    if (is_denormal(x.dtype(), x.get_double(i))) y.set_double(i, std::copysign(0.0, x.get_double(i)));
  return y;
}

using Inputs = std::map<std::string, Array>;

/// The reference on operands of which each may have its denormal numbers as zeros: kernels need not tell them apart.
std::vector<std::vector<Array>> references(const Graph& graph, const Inputs& inputs) {
  std::vector<std::vector<Array>> all{evaluate(graph, inputs)};
  if (!is_float(inputs.at("x").dtype())) return all;
  for (const int flushed : {1, 2, 3}) {
    Inputs changed = inputs;
    if (flushed & 1) changed.at("x") = with_zeros_for_denormals(inputs.at("x"));
    if (flushed & 2) changed.at("z") = with_zeros_for_denormals(inputs.at("z"));
    all.push_back(evaluate(graph, changed));
  }
  return all;
}

/// Within the bound of one of the references, where a denormal result counts as the zero of its sign.
bool agrees(const Array& seen, const std::vector<std::vector<Array>>& wanted, std::size_t output, std::int64_t i, double ulps) {
  const DType t = seen.dtype();
  for (const auto& reference : wanted) {
    const Array& want = reference[output];
    if (same_element(seen, want, i)) return true;
    if (!is_float(t)) continue;
    const double value = seen.get_double(i), exact = want.get_double(i);
    if (ulps_off(t, value, exact) <= ulps) return true;
    // A result is denormal or not before it is rounded, so the smallest normal number may have come from below.
    const bool tiny = exact == 0 || is_denormal(t, exact) || std::fabs(exact) == smallest_normal(register_type(t));
    if (tiny && (value == 0 || is_denormal(t, value)) && std::signbit(value) == std::signbit(exact)) return true;
  }
  return false;
}

struct Expected {
  const Graph& graph;
  const Inputs& inputs;
  std::vector<std::vector<Array>> references;
  std::vector<double> ulps;
};

void expect_output(const Expected& expected, std::size_t output, const Array& seen, const std::string& dialect) {
  int wrong = 0;
  std::string first;
  for (std::int64_t i = 0; i < seen.size(); ++i) {
    if (agrees(seen, expected.references, output, i, expected.ulps[output])) continue;
    if (wrong++ < 3)
      first += fmt::format("; of {} and {}: {}, must be {}", expected.inputs.at("x").get_double(i), expected.inputs.at("z").get_double(i),
                           seen.get_double(i), expected.references[0][output].get_double(i));
  }
  EXPECT_EQ(wrong, 0) << dialect << ", " << expected.graph.outputs()[output].first << first;
}

std::vector<Array> run_as_kernels_run(const Expected& expected, const Kernel& kernel, KernelFunction function) {
  const cpu::FlushDenormals flush;
  return run_kernel(expected.graph, kernel, function, expected.inputs);
}

/// Kernels and results of one type.
class SpecialValues : public testing::TestWithParam<DType> {};

TEST_P(SpecialValues, OfEveryScalarOp) {
  const DType t = GetParam();
  const Array values = specials(t);
  Inputs inputs{{"x", grid(values, true)}, {"z", grid(values, false)}, {"w", grid(specials(boolean), true)}};
  const std::int64_t count = inputs.at("x").size();
  Array which(boolean, {count});
  for (std::int64_t i = 0; i < count; ++i) which.set_double(i, i % 3 == 0);
  inputs.at("w") = which;
  std::vector<double> ulps;
  const Graph graph = scalar_ops_on(t, count, ulps);
  Kernel kernel = kernel_of(graph);
  expand_math(kernel);
  const KernelText text = emit_c(kernel);
  const CompiledC library({text});
  const Expected expected{graph, inputs, references(graph, inputs), ulps};
  const auto by_c = run_as_kernels_run(expected, kernel, library.function(text.name)),
             by_llvm = run_as_kernels_run(expected, kernel, compile_llvm(kernel));
  for (std::size_t o = 0; o < ulps.size(); ++o) {
    expect_output(expected, o, by_c[o], "C");
    expect_output(expected, o, by_llvm[o], "LLVM");
    if (!is_float(t)) continue;
    // Alone as well: LLVM rewrites float operations that have no other user.
    Kernel alone = kernel;
    alone.stores = {kernel.stores[o]};
    expect_output(expected, o, run_as_kernels_run(expected, alone, compile_llvm(alone))[o], "LLVM, alone");
  }
}

INSTANTIATE_TEST_SUITE_P(Type, SpecialValues, testing::ValuesIn(generated_types),
                         [](const auto& info) { return std::string(name(info.param)); });

/// NaN at every place of a row, and rows of infinities and zeros. Which zero a row of both gives is left open.
TEST(SpecialReductions, ExtremesOfRowsKeepNanAndInfinities) {
  constexpr std::int64_t columns = 41, rows = columns + 4;
  for (const DType t : {f32, f64, f16, bf16}) {
    SCOPED_TRACE(name(t));
    Array x(t, {rows, columns});
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < columns; ++i) {
        const double plain = row < columns        ? static_cast<double>(i) - 20.5
                             : row == columns     ? -INFINITY
                             : row == columns + 1 ? INFINITY
                             : row == columns + 2 ? -0.0
                                                  : 0.0;
        x.set_double(row * columns + i, row == i ? NAN : plain);
      }
    for (const bool largest : {true, false}) {
      Graph graph;
      const Value in = graph.input("x", {rows, columns}, t);
      graph.output("y", largest ? reduce_max(in, {1}) : reduce_min(in, {1}));
      const Kernel kernel = kernel_of(graph);
      const KernelText text = emit_c(kernel);
      const CompiledC library({text});
      const Array wanted = evaluate(graph, {{"x", x}})[0];
      for (const auto function : {compile_llvm(kernel), library.function(text.name)}) {
        const Array seen = run_kernel(graph, kernel, function, {{"x", x}})[0];
        for (std::int64_t i = 0; i < rows; ++i) EXPECT_TRUE(same_element(seen, wanted, i)) << "row " << i << ": " << seen.get_double(i);
      }
    }
  }
}

/// Fill values that the type does not hold are stored by one rule; the default of a gather is a limit of the type.
TEST(SpecialFills, AreThoseOfTheReference) {
  for (const DType t : generated_types) {
    SCOPED_TRACE(name(t));
    const bool with_halves = is_float(t);
    const GatherNumbers rows{{1}, {0}, {0}};
    for (const double fill : {-1.0, 300.0, 0.5, 1e30, -1e30, 0x1p63, 0x1p64, -0.0, static_cast<double>(NAN)}) {
      Graph graph;
      const Value x = graph.input("x", {3, 4}, t), which = graph.input("which", {4, 1}, i64);
      graph.output("padded", reshape(pad(x, {1, 0}, {0, 0}, {}, fill), {4, 4}));
      const Value looked_up = gather(x, which, rows, {1, 4}, IndexMode::fill, fill),
                  by_default = gather(x, which, rows, {1, 4}, IndexMode::fill);
      graph.output("looked up", looked_up);
      if (!(by_default == looked_up)) graph.output("by default", by_default);  // a kernel stores a value once
      std::map<std::string, Array> inputs{{"x", Array(t, {3, 4})}, {"which", Array(i64, {4, 1})}};
      for (std::int64_t i = 0; i < 12; ++i)
        inputs.at("x").set_double(i, with_halves ? 0.5 * static_cast<double>(i) : static_cast<double>(i));
      for (std::int64_t i = 0; i < 4; ++i) inputs.at("which").set_int(i, i == 0 ? INT64_MIN / 2 : i == 1 ? (std::int64_t{1} << 50) : i - 2);
      const Kernel kernel = kernel_of(graph);
      const KernelText text = emit_c(kernel);
      const CompiledC library({text});
      const auto wanted = evaluate(graph, inputs);
      for (const auto function : {compile_llvm(kernel), library.function(text.name)}) {
        const auto seen = run_kernel(graph, kernel, function, inputs);
        for (std::size_t o = 0; o < wanted.size(); ++o)
          for (std::int64_t i = 0; i < wanted[o].size(); ++i)
            EXPECT_TRUE(same_element(seen[o], wanted[o], i)) << graph.outputs()[o].first << " with " << fill << " at " << i << ": "
                                                             << seen[o].get_double(i) << ", must be " << wanted[o].get_double(i);
      }
    }
  }
}

/// The level is chosen once in a process, so lower ones run in a child.
TEST(SpecialValuesAtLowerLevels, AreTheSame) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (auto level : cpu::allowed_levels(cpu::cpu_features())) {
    if (level == cpu::best_level(cpu::cpu_features())) continue;
    const std::string command = "RLX_CPU=" + std::string(cpu::to_string(level)) + " '" + self +
                                "' --gtest_filter=*SpecialValues.*:SpecialReductions.* --gtest_brief=1";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

}  // namespace
}  // namespace rlx::test
