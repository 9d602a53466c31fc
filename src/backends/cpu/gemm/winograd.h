#pragma once
#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu {

/// A convolution with kernels of 3 x 3 and stride 1 over images with the channels side by side, by the products of Winograd's F(2 x 2, 3 x
/// 3): of 16 factors for 4 results where windows have 36. Results are (images, height, width, columns), the images (images, height + 2,
/// width + 2, channels). T is float or double.
template <class T>
struct WinogradArgs {
  std::int64_t images = 1, height = 0, width = 0, channels = 0, columns = 0;
  const T* x = nullptr;
  std::int64_t image_stride = 0, line_stride = 0, position_stride = 0;
  const PackedB<T>* weights = nullptr;  // of winograd_weights
  Epilogue<T> epilogue = nullptr;       // items are images, rows (height, width)
  void* epilogue_context = nullptr;
  std::byte* workspace = nullptr;  // winograd_workspace bytes on a 64-byte boundary
};

/// Whether it pays for convolutions of such sizes, all of 1 or more. It does not depend on the number of images, so neither do bits.
bool worth_winograd(std::int64_t height, std::int64_t width, std::int64_t channels, std::int64_t columns);

/// What kernels of 3 x 3 become, packed as 16 items of (channels, columns): element (i, j, channel, column) is w[i * line_stride +
/// j * position_stride + channel * channel_stride + column * column_stride].
template <class T>
struct WinogradKernels {
  const T* w;
  std::int64_t line_stride, position_stride, channel_stride, column_stride;
};
inline constexpr std::int64_t winograd_items = 16;
template <class T>
void pack_winograd(const WinogradKernels<T>& kernels, PackedB<T>& packed, ThreadPool& pool);

template <class T>
std::size_t winograd_workspace(const WinogradArgs<T>& args, int threads);

/// Every result is computed in one order, whatever the threads and the image's place among the images.
template <class T>
void winograd(const WinogradArgs<T>& args, ThreadPool& pool);

}  // namespace rlx::cpu
