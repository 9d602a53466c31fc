// What kernels have no form for: products and powers of complex numbers, and 4-bit integers whose rows end inside a byte.
#include <algorithm>
#include <complex>
#include <limits>

#include "backends/cpu/routines/routine.h"
#include "ir/op.h"

namespace rlx::cpu {
namespace {

using Complex = std::complex<double>;

// -- the product of complex numbers over axes

template <class T>
void multiply_over_axes(const RoutineCall& call) {
  const RoutineArray &x = call.operands[0], &y = call.results[0];
  const auto& axes = std::get<std::vector<std::int64_t>>(call.attrs[1]);
  struct Extent {
    std::int64_t size, stride;
  };
  std::vector<Extent> kept, multiplied;  // the last axis first
  std::int64_t stride = 1, terms = 1;
  for (auto axis = static_cast<std::int64_t>(x.shape.size()); axis-- > 0;) {
    const std::int64_t size = x.shape[static_cast<std::size_t>(axis)];
    const bool goes = std::ranges::count(axes, axis) > 0;
    (goes ? multiplied : kept).push_back({size, stride});
    stride *= size, terms *= goes ? size : 1;
  }
  const auto place = [](const std::vector<Extent>& extents, std::int64_t number) {
    std::int64_t at = 0;
    for (const Extent& extent : extents) at += number % extent.size * extent.stride, number /= extent.size;
    return at;
  };
  call.pool.parallel_for(y.size(), std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, terms)),
                         [&](std::int64_t begin, std::int64_t end, int) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             const auto* from = x.as<const std::complex<T>>() + place(kept, i);
                             Complex product = 1;
                             for (std::int64_t k = 0; k < terms; ++k) product *= Complex(from[place(multiplied, k)]);
                             y.as<std::complex<T>>()[i] = std::complex<T>(product);
                           }
                         });
}

void multiply(const RoutineCall& call) {
  return call.results[0].dtype == c64 ? multiply_over_axes<float>(call) : multiply_over_axes<double>(call);
}
bool takes_product(const Graph&, const Node& node) {
  return is_complex(node.results[0].dtype) && std::get<std::string>(node.attrs[0]) == "prod";
}

// -- powers in f64

/// As the op has it: anything to the zero is 1, and zero to a positive power 0.
Complex power(Complex x, Complex y) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (y == Complex()) return 1;
  if (x == Complex()) return y.real() > 0 ? Complex() : Complex{nan, nan};
  return std::pow(x, y);
}

void raise(const RoutineCall& call) {
  const auto *x = call.operands[0].as<const Complex>(), *y = call.operands[1].as<const Complex>();
  auto* z = call.results[0].as<Complex>();
  call.pool.parallel_for(call.results[0].size(), 256, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) z[i] = power(x[i], y[i]);
  });
}
bool takes_power(const Graph&, const Node& node) { return node.results[0].dtype == c128; }

// -- 4-bit integers from and to bytes

void unpack(const RoutineCall& call) {
  const auto* x = call.operands[0].as<const std::uint8_t>();
  auto* y = call.results[0].as<std::uint8_t>();
  const int fill = call.operands[0].dtype == i4 ? 8 : 0;  // the sign
  call.pool.parallel_for(call.results[0].size(), 1 << 14, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<std::uint8_t>(((x[i / 2] >> (i % 2 * 4) & 15) ^ fill) - fill);
  });
}
void pack(const RoutineCall& call) {
  const auto* x = call.operands[0].as<const std::uint8_t>();
  auto* y = call.results[0].as<std::uint8_t>();
  const std::int64_t n = call.results[0].size();
  call.pool.parallel_for((n + 1) / 2, 1 << 14, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<std::uint8_t>((x[2 * i] & 15) | (2 * i + 1 < n ? x[2 * i + 1] << 4 : 0));
  });
}
void repack(const RoutineCall& call) { is_packed(call.results[0].dtype) ? pack(call) : unpack(call); }
bool takes_packed(const Graph& graph, const Node& node) {
  const DType from = graph.type(node.operands[0]).dtype, to = node.results[0].dtype;
  return is_packed(from) ? to == (from == i4 ? i8 : u8) : is_packed(to) && from == (to == i4 ? i8 : u8);
}

const RegisterRoutine product_routine({.op = "reduce", .takes = takes_product, .run = multiply});
const RegisterRoutine power_routine({.op = "pow", .takes = takes_power, .run = raise});
const RegisterRoutine packed_routine({.op = "cast", .takes = takes_packed, .run = repack});

}  // namespace
}  // namespace rlx::cpu
