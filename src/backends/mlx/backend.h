#pragma once
#include <string>
#include <vector>

#include "backends/backend.h"

namespace rlx::mlx {

/// The devices of MLX, best first, found once.
const std::vector<const Backend*>& backends();
/// Why there are none, and what to install; empty where there are some.
const std::string& missing();

/// What the library librlx_mlx has under the name `library_entry`: it is made where MLX is found, and alone links to it.
struct Library {
  std::vector<const Backend*> backends;
};
using LibraryEntry = const Library* (*)();
inline constexpr const char* library_entry = "rlx_open_mlx";

}  // namespace rlx::mlx
