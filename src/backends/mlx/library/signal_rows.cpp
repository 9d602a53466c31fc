// Fourier transforms, and factors of matrices.
#include "backends/mlx/library/call.h"

namespace rlx::mlx {
namespace {

Results fft(const Call& c) {
  const int axis = c.axis(), n = c.x[0].shape(axis);
  return c.flag("inverse") ? mx::fft::ifft(c.x[0], n, axis) : mx::fft::fft(c.x[0], n, axis);
}
Results rfft(const Call& c) { return mx::fft::rfft(c.x[0], c.x[0].shape(c.axis()), c.axis()); }
Results irfft(const Call& c) { return mx::fft::irfft(c.x[0], static_cast<int>(c.number("n")), c.axis()); }

bool is_f32(const Graph& graph, const Node& node) {
  const DType dtype = graph.type(node.operands[0]).dtype;
  return dtype == f32 || dtype == c64;
}

constexpr std::string_view single = "MLX transforms c64 alone";
constexpr std::string_view linalg = "MLX factors on the CPU, with other results where a matrix has no factors";

}  // namespace

Rows signal_rows() {
  static constexpr Row<Rule> rows[] = {
      {"fft", fft, is_f32, single},     {"rfft", rfft, is_f32, single},         {"irfft", irfft, is_f32, single},
      {"lu", nullptr, nullptr, linalg}, {"cholesky", nullptr, nullptr, linalg}, {"triangular_solve", nullptr, nullptr, linalg},
  };
  return rows;
}

}  // namespace rlx::mlx
