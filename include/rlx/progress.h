#pragma once
#include <cstddef>
#include <functional>
#include <string_view>

namespace rlx {

/// Work of the library that may take seconds, such as "loading" weights or "packing" them for kernels. `done` reaches `total` at its end.
using ProgressListener = std::function<void(std::string_view work, std::size_t done, std::size_t total)>;

/// Who is told of such work from now on: one listener a process, as there is one terminal; none to end it. It is called by one thread at a
/// time, must not throw, and must not call this function.
void listen_to_progress(ProgressListener listener);

}  // namespace rlx
