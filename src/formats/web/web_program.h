#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/json/json.h"
#include "rlx/io.h"

namespace rlx {

/// A graph as program.js of this folder runs it.
struct WebProgram {
  json::Value description;     // symbols, inputs, outputs, slots of memory, kernels and launches
  std::string kernels;         // the WGSL of all kernels, of which the description names the ranges
  std::vector<Array> weights;  // in the order of their bytes in the file, each from a multiple of web_alignment on
};

inline constexpr std::int64_t web_alignment = 8;  // bytes

/// Throws Error for a parameter without a value, and naming the op and its type where no kernel of WebGPU computes it.
WebProgram make_web_program(const SavedGraph& saved);

}  // namespace rlx
