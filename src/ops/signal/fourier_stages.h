#pragma once
#include "rlx/graph.h"

namespace rlx {

/// The Fourier transform of complex x along `axis` by products with small matrices; `inverse`: divided by the length.
Value fft_in_stages(Value x, std::int64_t axis, bool inverse);

}  // namespace rlx
