#pragma once
#include <cstddef>
#include <functional>

#include "item.h"

namespace rlx::python {

/// Ctrl-C ends long work: asked now and then by the thread that works.
bool is_interrupted();

/// What long work tells how far it is, without the lock. `function`, a callable of (done, total) or None, outlives it.
std::function<void(std::size_t done, std::size_t total)> progress_of(const nb::object& function);

}  // namespace rlx::python
