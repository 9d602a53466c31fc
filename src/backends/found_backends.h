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

/// What librlx_KIND has under a name: a library that only some builds make, opened at run time. Null where there is none: `missing` says
/// why, and what to do about it by `advice`.
void* library_function(std::string_view kind, const char* name, std::string_view advice, std::string& missing);

/// The devices that `of` makes of what the function of a library gives; see library_function.
template <class Function, class Of>
FoundBackends found_in_library(std::string_view kind, const char* name, std::string_view advice, const Of& of) {
  FoundBackends found;
  if (const auto open = reinterpret_cast<Function>(library_function(kind, name, advice, found.missing))) of(*open(), found);
  return found;
}

}  // namespace rlx
