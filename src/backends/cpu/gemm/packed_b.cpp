#include "backends/cpu/gemm/packed_b.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/gemm/blocking.h"
#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {

template <class T>
std::int64_t PackedB<T>::bytes_of(std::int64_t batch, std::int64_t k, std::int64_t n, const MicroKernel<T>& kernel) {
  if (batch < 0 || k < 0 || n < 0) fail("packed B: batch {}, k {}, n {} (allowed: 0 and more)", batch, k, n);
  const std::int64_t sizes[] = {batch, n / kernel.panel_cols + (n % kernel.panel_cols != 0), kernel.panel_cols, sizeof(Packed<T>)};
  const auto depth = checked_add(kernel.units(k), std::int64_t{kernel.raised});
  const auto plane = checked_product(sizes), bytes = depth && plane ? checked_mul(*depth, *plane) : std::nullopt;
  if (!bytes) fail("packed B: batch {}, k {}, n {} take more bytes than 64 bits count", batch, k, n);
  return *bytes;
}

template <class T>
PackedB<T>::PackedB(std::int64_t batch, std::int64_t k, std::int64_t n, const MicroKernel<T>& kernel, std::byte* memory)
    : batch_(batch), k_(k), n_(n), kernel_(&kernel), memory_(memory) {
  const std::int64_t bytes = bytes_of(batch, k, n, kernel);
  panels_ = n / kernel.panel_cols + (n % kernel.panel_cols != 0);
  panel_units_ = kernel.panel_units(k);
  if (!memory) own_ = take_piece(static_cast<std::size_t>(bytes)), memory_ = own_.get();
}

template <class T>
void pack_b_panel(const Strided<T>& from, std::int64_t lanes, std::int64_t k, const MicroKernel<T>& kernel, Packed<T>* panel) {
  Packed<T>* const units = panel + (kernel.raised ? kernel.panel_cols : 0);
  pack_panel(from, lanes, k, units, kernel.panel_cols);
  if (kernel.depth_step > 1)
    std::fill(units + units_of<T>(k) * kernel.panel_cols, units + kernel.units(k) * kernel.panel_cols, Packed<T>{0});
  if constexpr (std::is_same_v<T, std::int8_t>)
    if (kernel.raised) find_starts(units, units_of<T>(k), kernel.panel_cols, reinterpret_cast<std::int32_t*>(panel));
}

template <class T>
void for_each_panel(const PackedB<T>& b, ThreadPool& pool, FunctionRef<void(std::int64_t item, std::int64_t panel)> body) {
  if (b.panels() == 0) return;
  const MicroKernel<T>& kernel = b.kernel();
  const Blocking cut = choose_blocking({1, 1, kernel.units(b.k()), b.panels(), kernel.panel_cols, kernel.max_rows, kernel.row_step,
                                        kernel.depth_step, kernel.longest_pass, sizeof(Packed<T>)},
                                       cpu_features().l2_bytes, pool.size());
  pool.parallel_for(b.batch() * cut.col_blocks, cut.grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t part = begin; part < end; ++part) {
      const Range panels = even_part(b.panels(), cut.col_blocks, part % cut.col_blocks);
      for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) body(part / cut.col_blocks, panel);
    }
  });
}

template <class T>
void PackedB<T>::pack(const Matrix<T>& b, ThreadPool& pool) {
  const std::int64_t width = kernel_->panel_cols;
  for_each_panel<T>(*this, pool, [&](std::int64_t item, std::int64_t index) {
    const std::int64_t col0 = index * width;
    pack_b_panel(columns_of(b, item, col0), std::min(width, n_ - col0), k_, *kernel_, panel(item, index));
  });
}

template <class T>
PackedB<T> pack_b(const Matrix<T>& b, std::int64_t batch, std::int64_t k, std::int64_t n, ThreadPool& pool, const MicroKernel<T>& kernel) {
  PackedB<T> packed(batch, k, n, kernel);
  packed.pack(b, pool);
  return packed;
}

template class PackedB<float>;
template class PackedB<double>;
template class PackedB<Bf16>;
template class PackedB<F16>;
template class PackedB<Bf16Weight>;
template class PackedB<std::int8_t>;
template void pack_b_panel(const Strided<float>&, std::int64_t, std::int64_t, const MicroKernel<float>&, float*);
template void pack_b_panel(const Strided<double>&, std::int64_t, std::int64_t, const MicroKernel<double>&, double*);
template void pack_b_panel(const Strided<Bf16>&, std::int64_t, std::int64_t, const MicroKernel<Bf16>&, std::uint32_t*);
template void pack_b_panel(const Strided<F16>&, std::int64_t, std::int64_t, const MicroKernel<F16>&, std::uint16_t*);
template void pack_b_panel(const Strided<Bf16Weight>&, std::int64_t, std::int64_t, const MicroKernel<Bf16Weight>&, std::uint16_t*);
template void pack_b_panel(const Strided<std::int8_t>&, std::int64_t, std::int64_t, const MicroKernel<std::int8_t>&, std::uint32_t*);
template void for_each_panel(const PackedB<float>&, ThreadPool&, FunctionRef<void(std::int64_t, std::int64_t)>);
template PackedB<float> pack_b(const Matrix<float>&, std::int64_t, std::int64_t, std::int64_t, ThreadPool&, const MicroKernel<float>&);
template PackedB<double> pack_b(const Matrix<double>&, std::int64_t, std::int64_t, std::int64_t, ThreadPool&, const MicroKernel<double>&);
template PackedB<Bf16> pack_b(const Matrix<Bf16>&, std::int64_t, std::int64_t, std::int64_t, ThreadPool&, const MicroKernel<Bf16>&);
template PackedB<F16> pack_b(const Matrix<F16>&, std::int64_t, std::int64_t, std::int64_t, ThreadPool&, const MicroKernel<F16>&);
template PackedB<Bf16Weight> pack_b(const Matrix<Bf16Weight>&, std::int64_t, std::int64_t, std::int64_t, ThreadPool&,
                                    const MicroKernel<Bf16Weight>&);
template PackedB<std::int8_t> pack_b(const Matrix<std::int8_t>&, std::int64_t, std::int64_t, std::int64_t, ThreadPool&,
                                     const MicroKernel<std::int8_t>&);

}  // namespace rlx::cpu
