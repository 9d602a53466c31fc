#pragma once
#include <array>
#include <string_view>

#include "emit/emit.h"

namespace rlx {

/// How a language of C's family writes what its members write differently: data alone. In patterns {T} is a type, {n} a number.
struct CDialect {
  std::string_view name;                              // begins the names of kernels
  std::string_view header, f64_header = {};           // of every text; also of one with numbers of f64
  std::array<std::string_view, 4> signed_integers;    // of 8, 16, 32 and 64 bits
  std::array<std::string_view, 4> unsigned_integers;  // likewise
  std::string_view long_suffix;                       // of literals of 64 bits
  std::string_view f32_suffix = {};                   // of functions of f32
  std::string_view nearest;                           // the function to the nearest integer, ties to even
  std::string_view lanes = {};                        // before a loop over {n} elements of a vector; empty: nothing
  // Vectors of {n} f32: the type, one loaded from {p}, from f16 and bf16 there, and stored there; the sum of the halves of {x}. Empty: the
  // language has none.
  std::string_view vector = {}, vector_load = {}, f16_load = {}, bf16_load = {}, vector_store = {}, vector_fold = {};
  /// rlx_dots(sums, codes, x, less), which adds to the sums of 16 lanes the products of four 8-bit numbers x and four vectors of codes,
  /// less a number; see DotSum.
  std::string_view dots = {};
  bool fused_sums;        // sums of products are made by fma
  std::string_view bits;  // declares {y} of type {T}: the {size} bytes of {x}

  std::string_view f16_to_f32 = {};  // the function of that name, where {text} is the one in arithmetic; empty: that is it

  std::string_view definition;  // {text} of a function {name} that texts share, which may stand in one program

  // The function around the body: what opens it, its parameters by buffer and by symbol of sizes, and what closes them.
  std::string_view open, buffer_parameter = {}, size_parameter = {}, close;
  std::string_view buffer = {};  // makes b{n} of these, in a function that uses it
  std::string_view size;         // the value of a symbol
  // The same of groups of {n} lanes, and of buffers that begin where 16 bytes do. The lane; which of the rows of a block it has; what a
  // lane of the warp has whose number differs in the bits {n}; {n} elements {name} on chip, and of a lane's own where 16 bytes begin; where
  // lanes wait for the group, and for their warp.
  std::string_view group_header = {}, group_open = {}, aligned_buffer = {}, group_position = {};
  std::string_view group_lane = {}, group_row = {}, exchange = {}, on_chip = {}, aligned_array = {}, barrier = {}, warp_barrier = {};
  std::array<std::string_view, 5> pieces = {};  // types of 1, 2, 4, 8 and 16 bytes
  // Makes `position`, an {I}, the only one it computes, or leaves the function; empty: it goes from `begin` to `end`.
  std::string_view position = {};
};

/// CUDA C++ and HIP.
const CDialect& cuda_dialect();

/// As emit_metal, for who writes the function around the body himself, as MLX does: what stands before the function, and behind
/// `metal_body_mark` its body. That names a pointer for each kernel buffer b0, b1, ..., the symbols' values sizes[0], ..., and
/// thread_position_in_grid, whose x is the position.
KernelText emit_metal_body(const Kernel& kernel, const ScheduleOptions& options);
inline constexpr std::string_view metal_body_mark = "// body\n";

KernelText print_c(const Kernel& kernel, const CDialect& dialect, const ScheduleOptions& options);

}  // namespace rlx
