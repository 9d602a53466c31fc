#pragma once
#include <complex>
#include <cstdint>
#include <vector>

namespace rlx {

using ComplexNumbers = std::vector<std::complex<double>>;

/// e^(2 pi i k / n), exact at multiples of a quarter turn; k >= 0.
std::complex<double> root_of_unity(std::int64_t k, std::int64_t n);

/// y[k] = sum over j of x[j] * e^(sign * 2 pi i j k / n).
ComplexNumbers fourier_sums(const ComplexNumbers& x, double sign);

}  // namespace rlx
