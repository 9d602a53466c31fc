#include "backends/cpu/gemm/packed_b.h"

#include <algorithm>

#include "backends/cpu/gemm/micro_kernel.h"
#include "backends/cpu/gemm/pack.h"
#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {

template <class T>
PackedB<T>::PackedB(std::int64_t batch, std::int64_t k, std::int64_t n, CpuLevel level)
    : batch_(batch), k_(k), n_(n), level_(level), panel_cols_(micro_kernel<T>(level).panel_cols), panels_(0) {
  if (batch < 0 || k < 0 || n < 0) fail("packed B: batch {}, k {}, n {} (allowed: 0 and more)", batch, k, n);
  panels_ = n / panel_cols_ + (n % panel_cols_ != 0);
  const std::int64_t sizes[] = {batch, k, panels_, panel_cols_, sizeof(T)};
  const auto bytes = checked_product(sizes);
  if (!bytes) fail("packed B: batch {}, k {}, n {} take more bytes than 64 bits count", batch, k, n);
  buffer_ = AlignedBuffer(static_cast<std::size_t>(*bytes));
}

template <class T>
PackedB<T> pack_b(const Matrix<T>& b, std::int64_t batch, std::int64_t k, std::int64_t n, ThreadPool& pool, CpuLevel level) {
  PackedB<T> packed(batch, k, n, level);
  pool.parallel_for(batch * packed.panels(), 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t item = at / packed.panels(), panel = at % packed.panels(), col0 = panel * packed.panel_cols();
      const Strided<T> source{b.item(item) + col0 * b.col_stride, b.col_stride, b.row_stride};
      pack_panel(source, std::min(packed.panel_cols(), n - col0), k, packed.panel(item, panel), packed.panel_cols());
    }
  });
  return packed;
}

template class PackedB<float>;
template class PackedB<double>;
template PackedB<float> pack_b(const Matrix<float>&, std::int64_t, std::int64_t, std::int64_t, ThreadPool&, CpuLevel);
template PackedB<double> pack_b(const Matrix<double>&, std::int64_t, std::int64_t, std::int64_t, ThreadPool&, CpuLevel);

}  // namespace rlx::cpu
