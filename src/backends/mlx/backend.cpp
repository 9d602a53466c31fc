#include "backends/mlx/backend.h"

#include "backends/found_backends.h"

namespace rlx::mlx {
namespace {

/// MLX says by exceptions what it cannot do, so that a library of another version is told from one that is not there.
FoundBackends find() {
  return found_in_library<LibraryEntry>("mlx", library_entry, "scripts/fetch_mlx.sh installs MLX; build RLX again behind it",
                                        [](const Library& library, FoundBackends& found) { found.backends = library.backends; });
}

}  // namespace

const std::vector<const Backend*>& backends() { return found_once<find>().backends; }
const std::string& missing() { return found_once<find>().missing; }

}  // namespace rlx::mlx
