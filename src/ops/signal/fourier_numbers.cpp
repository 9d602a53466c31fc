// The Fourier transform of a line of numbers, for references and constants.
#include "ops/signal/fourier_numbers.h"

#include <algorithm>
#include <numbers>

namespace rlx {
namespace {

std::int64_t smallest_factor(std::int64_t n) {
  for (std::int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

}  // namespace

std::complex<double> root_of_unity(std::int64_t k, std::int64_t n) {
  k %= n;
  if (4 * k % n == 0) {
    constexpr std::complex<double> quarters[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    return quarters[4 * k / n];
  }
  return std::polar(1.0, 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
}

// Cooley and Tukey's split by the smallest prime factor; a prime length is summed directly.
ComplexNumbers fourier_sums(const ComplexNumbers& x, double sign) {
  const auto n = static_cast<std::int64_t>(x.size()), p = n > 1 ? smallest_factor(n) : 1, m = n / std::max<std::int64_t>(p, 1);
  if (n <= 1) return x;
  std::vector<ComplexNumbers> parts;
  for (std::int64_t r = 0; r < p; ++r) {
    ComplexNumbers part;
    for (std::int64_t i = r; i < n; i += p) part.push_back(x[static_cast<std::size_t>(i)]);
    parts.push_back(m == 1 ? part : fourier_sums(part, sign));
  }
  ComplexNumbers y(x.size());
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t r = 0; r < p; ++r) {
      const std::complex<double> root = root_of_unity(k * r, n);
      y[static_cast<std::size_t>(k)] +=
          (sign > 0 ? root : std::conj(root)) * parts[static_cast<std::size_t>(r)][static_cast<std::size_t>(k % m)];
    }
  return y;
}

}  // namespace rlx
