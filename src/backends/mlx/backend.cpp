#include "backends/mlx/backend.h"

#include <dlfcn.h>

#include "rlx/version.h"

namespace rlx::mlx {
namespace {

struct Found {
  std::vector<const Backend*> backends;
  std::string missing;
};

/// MLX says by exceptions what it cannot do, so that a library of another version is told from one that is not there.
Found find() {
  void* const library = dlopen(fmt::format("librlx_mlx-{}.so", version).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return {{}, fmt::format("{} (scripts/fetch_mlx.sh installs MLX; build RLX again behind it)", dlerror())};
  const auto entry = reinterpret_cast<LibraryEntry>(dlsym(library, library_entry));
  if (!entry) return {{}, dlerror()};
  return {entry()->backends, {}};
}

/// Never let go: sessions of static objects may end after everything else, and MLX has threads.
const Found& found() {
  static const Found& once = *new Found(find());
  return once;
}

}  // namespace

const std::vector<const Backend*>& backends() { return found().backends; }
const std::string& missing() { return found().missing; }

}  // namespace rlx::mlx
