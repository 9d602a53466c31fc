#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "emit/emit.h"
#include "rlx/dtype.h"

namespace rlx {

/// What a device can do, as far as lowering asks.
struct Caps {
  std::vector<DType> multiplied;       // elements whose products need not be widened to f32 first
  VectorMasks masks{};                 // of generated kernels
  std::int64_t past_caches_bytes = 0;  // the size from which on a result is not found in the last cache by who reads it next
  ScheduleOptions schedule = {};       // of generated kernels
  int units = 1;                       // that compute side by side
  bool multiplies_in_groups = false;   // matrices on chip by groups of warps, to which a copy engine brings boxes
  std::vector<DType> lacks = {};       // elements that its kernels can neither read nor compute
  int most_buffers = 1 << 30;          // of a generated kernel; those that it only reads may be more
  // Of all loops of a position together, at which the device ends them; 0: any number.
  std::int64_t most_rounds = 0;
  bool has(DType dtype) const { return std::ranges::find(lacks, dtype) == lacks.end(); }
  bool multiplies(DType dtype) const { return std::ranges::find(multiplied, dtype) != multiplied.end(); }
};

struct Claim;

/// What programs are made for.
struct TargetDevice {
  std::string name;         // of the backend
  std::string fingerprint;  // of all that compiled kernels depend on beside their text: part of the key of what is kept on disk
  int level = 0;            // of its instructions, as the backend counts them
  Caps caps;
  /// Prints a generated kernel in the language of the device.
  KernelText (*print)(const Kernel& kernel, const Caps& caps) = nullptr;
  std::vector<const Claim*> claims = {};  // in the order in which they take their parts of a graph
  bool expands = true;                    // primitives with an expansion become it, but for those that claims keep
  bool complete = false;                  // what neither claims nor kernels compute is an error; else the host computes it
};

}  // namespace rlx
