#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/memory/pages.h"
#include "emit/emit.h"

namespace rlx::cpu {

/// The function `name` of an object, in memory of its own: code, constants, and jumps to what it calls of the process's libraries.
class LinkedKernel {
 public:
  /// `object` is a relocatable ELF object of x86-64 with what kernels consist of: code and constants that refer to each other by distance,
  /// and calls. Throws Error for any other, for one that is damaged, and where a function that it calls is nowhere.
  LinkedKernel(std::span<const std::byte> object, std::string_view name);

  /// Valid while the object lives, also after a move.
  KernelFunction function() const;

 private:
  Pages pages_;
  std::size_t entry_ = 0;
};

}  // namespace rlx::cpu
