// rlx._core: what the package python/rlx stands on.
#include <nanobind/stl/string.h>

#include "item.h"
#include "released.h"
#include "rlx/version.h"

NB_MODULE(_core, m) {
  using namespace rlx::python;
  // Registered classes are held until the interpreter ends, and with them what their modules hold.
  nanobind::set_leak_warnings(false);
  // What a user can cause has a class of its own; a fault of RLX is a RuntimeError like those of C++ at large.
  nanobind::exception<rlx::Error>(m, "Error", PyExc_ValueError);
  m.attr("version") = std::string(rlx::version);
  watch_the_interpreter();
  bind_types(m);
  bind_arrays(m);
  bind_registry(m);
  bind_trees(m);
  bind_compiled(m);
  bind_transforms(m);
  bind_graphs(m);
  bind_models(m);
  bind_model_files(m);
  bind_host(m);
}
