#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/schedule.h"

namespace rlx {

/// Matrices in memory of which a copy engine brings boxes on chip, 128 bytes wide and in turned order (CUDA's tensor maps). In elements.
struct BoxMap {
  int buffer;  // of the kernel
  DType dtype;
  std::int64_t first;          // the element from which it counts
  std::array<Dim, 3> extents;  // of the axis whose elements lie side by side, the one outside of it, and items
  std::array<Dim, 2> strides;  // of the latter two
  std::array<int, 2> box;      // along the former two
};

/// The text of a kernel in one dialect.
struct KernelText {
  std::string name;  // made of the hash of the text: equal kernels have equal names
  std::string text;
  std::vector<GridLoop> grid = {};      // the loops whose positions are counted
  std::vector<int> element_bytes = {};  // of a text for devices: what each buffer's pointer counts in, by kernel buffer
  int group = 0;                        // lanes that work together on each position of the grid; 0: one lane alone
  int on_chip_bytes = 0;                // that a launch adds, for each group, to the memory on chip that the text names
  std::vector<BoxMap> maps = {};        // further arguments
  /// Of a text that binds fewer buffers than the kernel has: the elements of those that are copied into one for it, else nothing; by kernel
  /// buffer, as polynomials of `symbols`.
  std::vector<std::optional<Dim>> gathered = {};
  std::vector<Rounds> rounds = {};        // of WGSL: of the loops of an invocation, all together, at most; see rounds_of
  std::vector<std::string> symbols = {};  // of the sizes that a launch gives, where the parts above depend on them
};

/// What LLVM IR and C define: one pointer for each kernel buffer; `sizes` holds the values of kernel.symbols, then for a tile kernel begin
/// and end of every loop, by the number of its variable. A grid kernel computes the flat grid positions begin..end-1.
using KernelFunction = void (*)(void* const* buffers, const std::int64_t* sizes, std::int64_t begin, std::int64_t end);

KernelText emit_c(const Kernel& kernel, const ScheduleOptions& options = {});
/// A kernel of OpenCL C 1.2 without barriers. Its arguments are for each kernel buffer a pointer and the element of it from which indices
/// count (long), then the values of kernel.symbols (long), then the number of positions of the grid (long). The work item of global id i
/// computes position i; those behind the last one do nothing. Not for tile kernels.
KernelText emit_opencl(const Kernel& kernel, const ScheduleOptions& options = {.lanes = true});
inline constexpr int most_cuda_threads = 256;  // of a block
/// A kernel of CUDA C++ and HIP. Its arguments are a pointer for each kernel buffer, then the values of kernel.symbols
/// (long long), then the number of positions of the grid (long long). A thread of a grid of one dimension computes one position; those
/// behind the last one do nothing; with a group, a block computes it. Buffers that count in 16 bytes begin where these do. Without vectors
/// of ScheduleOptions, and not for tile kernels.
KernelText emit_cuda(const Kernel& kernel, const ScheduleOptions& options = {.lanes = true});
inline constexpr int wgsl_lanes = 64;  // of a group
/// A kernel of WGSL without barriers. Binding 0 is a uniform table of i32: the number of positions of the grid, by buffer the element
/// from which indices count, then the values of kernel.symbols. Binding 1 + n is buffer n as words to be read and written, so that one
/// memory may be several of them. Groups of `wgsl_lanes` have two dimensions, and a third of one: invocation i, counted along the first
/// one, computes position i; those behind the last one do nothing. Of more than `most_buffers` some that are only read lie behind each
/// other in the last binding. Not for tile kernels, nor for f64.
KernelText emit_wgsl(const Kernel& kernel, const ScheduleOptions& options = {.lanes = true, .products = false}, int most_buffers = 8);
/// A kernel of Metal without barriers. Its argument 0 is a struct of 64-bit words: the address of each kernel buffer, the values of
/// kernel.symbols, the number of positions of the grid. A thread of a grid of one dimension computes one position; those behind the last
/// one do nothing. Without vectors and without f64, and not for tile kernels.
KernelText emit_metal(const Kernel& kernel, const ScheduleOptions& options = {.lanes = true});
/// Rows of numbers that fill no whole vectors are computed under masks: in all vectors, where these cost little, or in the last alone.
enum class VectorMasks : std::uint8_t { none, last, all };
KernelText emit_llvm(const Kernel& kernel, VectorMasks masks = VectorMasks::none);

/// Replaces the marker @NAME@ by a name made of the text's hash.
KernelText named_by_hash(std::string text, std::string_view prefix, std::vector<GridLoop> grid);

inline constexpr std::string_view name_marker = "@NAME@";

/// The attribute, in LLVM's text, of a parameter that points to a result which goes past the caches: see KernelBuffer::past_caches.
inline constexpr std::string_view past_caches_mark = "past-caches";
inline constexpr int cache_line = 64;  // bytes

}  // namespace rlx
