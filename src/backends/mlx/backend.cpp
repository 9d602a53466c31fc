#include "backends/mlx/backend.h"

#include <dlfcn.h>

#include "backends/found_backends.h"
#include "rlx/version.h"

namespace rlx::mlx {
namespace {

/// MLX says by exceptions what it cannot do, so that a library of another version is told from one that is not there.
FoundBackends find() {
  void* const library = dlopen(fmt::format("librlx_mlx-{}.so", version).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return {{}, fmt::format("{} (scripts/fetch_mlx.sh installs MLX; build RLX again behind it)", dlerror())};
  const auto entry = reinterpret_cast<LibraryEntry>(dlsym(library, library_entry));
  if (!entry) return {{}, dlerror()};
  return {entry()->backends, {}};
}

}  // namespace

const std::vector<const Backend*>& backends() { return found_once<find>().backends; }
const std::string& missing() { return found_once<find>().missing; }

}  // namespace rlx::mlx
