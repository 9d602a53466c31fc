#pragma once
#include <algorithm>
#include <bit>
#include <functional>
#include <random>
#include <vector>

#include "backends/cpu/machine/cpu_features.h"
#include "ops/evaluated.h"
#include "ops/function_ranges.h"
#include "rlx/session.h"

// Functions of one float over their whole range: in kernels of every level of this CPU, and in the reference.
namespace rlx::test {

/// Numbers of every exponent and sign: so many random mantissas each, and the least and the largest; zeros and infinities.
template <class T>
std::vector<T> sweep(int mantissas) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  constexpr int width = std::numeric_limits<T>::digits - 1;
  std::mt19937_64 random(7);
  std::vector<T> x;
  for (Bits exponent = 1; exponent < (Bits(1) << (sizeof(T) * 8 - 1 - width)) - 1; ++exponent)
    for (int i = 0; i < mantissas + 2; ++i) {
      const Bits whole = (Bits(1) << width) - 1, mantissa = i == 0 ? 0 : i == 1 ? whole : static_cast<Bits>(random()) & whole;
      x.push_back(std::bit_cast<T>(static_cast<Bits>(exponent << width | mantissa)));
    }
  // Where functions are curved, overflow or vanish: f32 ends at 89 and 103, f64 at 711 and 745.
  for (int i = 0; i < 200 * mantissas; ++i) {
    const double part = static_cast<double>(random() >> 11) * 0x1p-53;
    for (const double most : {1.0, 4.0, 16.0, 110.0, 760.0}) x.push_back(static_cast<T>(part * most));
  }
  x.insert(x.end(), {0, std::numeric_limits<T>::infinity()});
  const std::size_t positive = x.size();
  for (std::size_t i = 0; i < positive; ++i) x.push_back(-x[i]);
  x.push_back(std::numeric_limits<T>::quiet_NaN());
  return x;
}

/// Distance of y from the exact value in units of the last place of Y; infinity when a special value is wrong. Instead of subnormal numbers
/// there may be 0, or what becomes of terms that were 0: gelu, x less its tail, is x where its tail, x/2, vanishes.
template <class Y, class T>
double ulps(Y y, T exact) {
  const Y rounded = static_cast<Y>(exact);
  if (std::isnan(rounded) || std::isnan(y)) return std::isnan(rounded) && std::isnan(y) ? 0 : INFINITY;
  if (std::fabs(exact) < std::numeric_limits<Y>::min()) return std::fabs(y) <= 2 * std::numeric_limits<Y>::min() ? 0 : INFINITY;
  int exponent = 0;
  std::frexp(exact, &exponent);
  const T unit = std::ldexp(T(1), exponent - std::numeric_limits<Y>::digits);
  if (std::isinf(rounded) || std::isinf(y)) {  // the last finite number is one unit from what rounds to infinity
    if (y == rounded) return 0;
    return !std::isinf(exact) && std::fabs(exact) > std::numeric_limits<Y>::max() - 4 * unit && std::signbit(y) == std::signbit(rounded)
               ? 1
               : INFINITY;
  }
  return static_cast<double>(std::fabs(y - exact) / unit);
}

inline Graph graph_of(const std::function<Value(Value)>& build, DType dtype, std::int64_t count) {
  Graph graph;
  graph.output("y", build(graph.input("x", {count}, dtype)));
  return graph;
}

template <class T>
Array numbers(const std::vector<T>& x) {
  Array all(sizeof(T) == 8 ? f64 : f32, {static_cast<std::int64_t>(x.size())});
  std::copy(x.begin(), x.end(), all.mutable_values<T>().begin());
  return all;
}

/// The function by kernels of `level`.
template <class T>
std::vector<T> by_kernel(const std::function<Value(Value)>& build, const std::vector<T>& x, cpu::CpuLevel level) {
  const Session session(Device::cpu(), {.threads = 1, .cache_folder = "", .cpu_level = std::string(cpu::to_string(level))});
  const Array in = numbers(x);
  const Array y = session.compile(graph_of(build, in.dtype(), in.size())).run({{"x", in}}).at("y");
  return {y.values<T>().begin(), y.values<T>().end()};
}

template <class T>
std::vector<T> by_reference(const std::function<Value(Value)>& build, const std::vector<T>& x) {
  const Array in = numbers(x);
  const Array y = evaluate(graph_of(build, in.dtype(), in.size()), {{"x", in}})[0];
  return {y.values<T>().begin(), y.values<T>().end()};
}

template <class T, class Wide>
void expect_within(const ExactFunction<Wide>& f, const std::vector<T>& x, const std::vector<T>& y, std::string_view by) {
  double worst = 0;
  T at = 0, seen = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Wide exact = f.exact(static_cast<Wide>(x[i]));
    if (std::fabs(y[i] - exact) <= f.absolute) continue;
    if (const double error = ulps(y[i], exact); error > worst) worst = error, at = x[i], seen = y[i];
  }
  fmt::print("{} f{} {}: at most {:.2f} ulp, at {}: {}\n", f.name, sizeof(T) * 8, by, worst, at, seen);
  EXPECT_LE(worst, f.ulps) << f.name << " by " << by << " at " << at << ": " << seen;
}

template <class T, class Wide>
void expect_whole_range(int mantissas) {
  const std::vector<T> x = sweep<T>(mantissas);
  for (const auto& f : exact_functions<Wide>()) {
    for (const cpu::CpuLevel level : cpu::allowed_levels(cpu::cpu_features()))
      if (level != cpu::CpuLevel::amx) expect_within(f, x, by_kernel(f.build, x, level), cpu::to_string(level));
    expect_within(f, x, by_reference(f.build, x), "reference");
  }
}

}  // namespace rlx::test
