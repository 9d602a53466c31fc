#pragma once
#include "rlx/progress.h"

namespace rlx {

/// Tells the listener, if there is one.
void report_progress(std::string_view work, std::size_t done, std::size_t total);

}  // namespace rlx
