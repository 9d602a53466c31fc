#include "backends/found_backends.h"

#include <dlfcn.h>

#include "rlx/version.h"

namespace rlx {

void* library_function(std::string_view kind, const char* name, std::string_view advice, std::string& missing) {
  void* const library = dlopen(fmt::format("librlx_{}-{}.so", kind, version).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    missing = fmt::format("{} ({})", dlerror(), advice);
    return nullptr;
  }
  void* const function = dlsym(library, name);
  if (!function) missing = dlerror();
  return function;
}

}  // namespace rlx
