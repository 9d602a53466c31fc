#pragma once
#include <string>
#include <vector>

#include "backends/backend.h"

namespace rlx {

/// The devices of a kind that this machine has, and why it has none.
struct FoundBackends {
  std::vector<const Backend*> backends;
  std::string missing;
};

/// What `find` gives, asked once. Never let go: sessions of static objects may end after everything else, and drivers have threads.
template <auto find>
const auto& found_once() {
  static const auto& found = *new auto(find());
  return found;
}

}  // namespace rlx
