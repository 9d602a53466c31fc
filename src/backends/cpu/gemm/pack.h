#pragma once
#include <cstdint>

#include "backends/cpu/gemm/micro_kernels/panel_format.h"

namespace rlx::cpu {

/// Where to find a (lanes, depth) piece of a matrix of any layout: element (lane, k) is data[lane * lane_stride + k * depth_stride], or
/// data[lane_offsets[lane] + depth_offsets[k]] where there are tables.
template <class T>
struct Strided {
  const T* data;
  std::int64_t lane_stride;
  std::int64_t depth_stride;
  const std::int64_t* lane_offsets = nullptr;
  const std::int64_t* depth_offsets = nullptr;

  /// The piece that starts there.
  Strided at(std::int64_t lane, std::int64_t k) const {
    if (lane_offsets) return {data, 0, 0, lane_offsets + lane, depth_offsets + k};
    return {data + lane * lane_stride + k * depth_stride, lane_stride, depth_stride};
  }
};

/// Fills the panel `to` (units of depth, width): its row k holds unit k of `lanes` lanes, then zeros; what the last unit has beyond the
/// depth is zero too. Lanes are rows of A or columns of B.
template <class T>
void pack_panel(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, Packed<T>* to, std::int64_t width);

void pack_panel(const Strided<F16>& from, std::int64_t lanes, std::int64_t depth, std::uint16_t* to, std::int64_t width);
void pack_panel(const Strided<Bf16Weight>& from, std::int64_t lanes, std::int64_t depth, std::uint16_t* to, std::int64_t width);

/// Fills blocks (width, block) of units, each `block` units of depth: a lane's units lie side by side. What the last block has beyond the
/// depth, and each beyond the lanes, is zero. T is Bf16 or std::int8_t.
template <class T>
void pack_blocks(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, Packed<T>* to, std::int64_t width, std::int64_t block);

/// For a raised kernel (MicroKernel): adds 128 to every byte of a panel of A.
void raise(std::uint32_t* panel, std::int64_t units);

/// For a raised kernel: -128 times the sum of each column of a panel of B (units, width), modulo 2^32. Expects whole cache lines of
/// columns.
void find_starts(const std::uint32_t* panel, std::int64_t units, std::int64_t width, std::int32_t* starts);

}  // namespace rlx::cpu
