// Fourier transforms, and factors of matrices.
#include <limits>

#include "backends/mlx/library/call.h"

namespace rlx::mlx {
namespace {

Results fft(const Call& c) {
  const int axis = c.axis(), n = c.x[0].shape(axis);
  return c.flag("inverse") ? mx::fft::ifft(c.x[0], n, axis) : mx::fft::fft(c.x[0], n, axis);
}
Results rfft(const Call& c) { return mx::fft::rfft(c.x[0], c.x[0].shape(c.axis()), c.axis()); }
Results irfft(const Call& c) { return mx::fft::irfft(c.x[0], static_cast<int>(c.number("n")), c.axis()); }

/// MLX leaves the pivot that is not positive on the diagonal, and says nothing.
Results cholesky(const Call& c) {
  const mx::array& a = c.x[0];
  const mx::array l = mx::linalg::cholesky(a, false, mx::default_stream(mx::Device::cpu));
  const mx::array positive = mx::all(mx::greater(mx::diagonal(l, 0, -2, -1), number_like(0, a)), -1);
  const mx::array nan = number_like(std::numeric_limits<double>::quiet_NaN(), a);
  return mx::tril(mx::where(mx::expand_dims(positive, {-2, -1}), l, nan));
}
bool takes_reals(const Graph& graph, const Node& node) { return !is_complex(graph.type(node.operands[0]).dtype); }

bool is_f32(const Graph& graph, const Node& node) {
  const DType dtype = graph.type(node.operands[0]).dtype;
  return dtype == f32 || dtype == c64;
}

constexpr std::string_view single = "MLX transforms c64 alone";
constexpr std::string_view real_ones = "MLX factors real matrices";
constexpr std::string_view singular = "MLX ends a run where a matrix is singular";

}  // namespace

Rows signal_rows() {
  static constexpr Row<Rule> rows[] = {
      {"fft", fft, is_f32, single},
      {"rfft", rfft, is_f32, single},
      {"irfft", irfft, is_f32, single},
      {"lu", nullptr, nullptr, singular},
      {"cholesky", cholesky, takes_reals, real_ones},
      {"triangular_solve", nullptr, nullptr, singular},
  };
  return rows;
}

}  // namespace rlx::mlx
