#pragma once
#include <functional>

#include "lowering/program.h"
#include "lowering/sizes.h"

namespace rlx {

/// What a generated kernel needs at run time, found once for each program.
struct KernelStep {
  std::vector<int> buffers;          // memory slot of each; -1: the tile of a claim that calls it
  std::vector<std::int64_t> starts;  // the bytes of each that it does not count
  std::vector<Size> grid;
  std::vector<std::pair<Size, double>> work;  // operations of one grid step: the sum of size * count
};

KernelStep prepare_kernel(const GeneratedKernel& launch, SizeTable& sizes, const std::function<int(ValueId)>& slot_of);

}  // namespace rlx
