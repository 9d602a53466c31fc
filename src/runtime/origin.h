#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/executable.h"

namespace rlx {

/// What tells the bytes of a value that is the same in every run: where they lie, of a parameter or constant; else its type, whose size no
/// kernel's text says, and by which kernels they are computed, or how they are packed, from which of those, of what is prepared. Programs
/// of a session know by it that they would compute the same.
struct Origin {
  std::string name;           // empty: nobody can tell, as of what the host or a claim computes, and of bytes without an owner
  std::vector<Array> arrays;  // parameters and constants; while they live, and stay as they are, the name means the same
};

/// Of bytes that are there.
Origin origin_of(const Array& array);

/// The origins of a program's values for these inputs, as far as they stay.
class Origins {
 public:
  Origins(const Executable::State& state, std::vector<Array> inputs) : state_(state), inputs_(std::move(inputs)) {}

  /// `slot`: of a parameter, a constant or a prepared value.
  const Origin& of(int slot);

 private:
  Origin found(int slot);
  Origin computed(int slot, std::size_t value);
  bool add_read(Origin& origin, int slot);
  bool add(Origin& origin, const GeneratedKernel& kernel, int slot);

  const Executable::State& state_;
  const std::vector<Array> inputs_;
  std::map<int, Origin> known_;
};

}  // namespace rlx
