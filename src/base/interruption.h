#pragma once

namespace rlx {

/// Calls what rlx/interruption.h says for this thread, at most once in some milliseconds, and throws what that throws. For the steps of
/// long work that leave nothing half done.
void check_interruption();

}  // namespace rlx
