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
  Size chosen_by = Size(0);  // it runs where this lies in the range
  std::int64_t least = 0, most = 0;
  std::vector<std::pair<Size, double>> work;  // operations of one grid step: the sum of size * count

  /// Of the grid; none where it does not run. `sizes`: SizeTable::values.
  std::int64_t positions(const std::int64_t* sizes) const;
  /// Where each buffer's numbers begin. `memory`: by slot.
  template <class Pointer>
  std::vector<Pointer> places(const std::vector<std::byte*>& memory) const {
    std::vector<Pointer> all;
    all.reserve(buffers.size());
    add_places(memory, all);
    return all;
  }
  template <class Pointer>
  void add_places(const std::vector<std::byte*>& memory, std::vector<Pointer>& all) const {
    for (std::size_t i = 0; i < buffers.size(); ++i) all.push_back(memory[static_cast<std::size_t>(buffers[i])] + starts[i]);
  }
};

/// What a launch needs at run time, likewise.
struct LaunchStep {
  const Launch* launch = nullptr;
  std::vector<KernelStep> kernels;     // of the launch
  std::vector<int> operands, results;  // their slots; of a claim: as it likes
};

/// Of a launch without code of a device. The sizes come into the table; `slot_of` numbers the memory of each stored value.
LaunchStep prepare_launch(const Launch& launch, SizeTable& sizes, const std::function<int(ValueId)>& slot_of);

}  // namespace rlx
