#pragma once

/// The terminal that a user types into.
namespace rlx::command {

/// Whether the terminal of standard output understands escape sequences.
bool understands_escapes();

/// A line is edited from now on: the terminal puts marks around what is pasted (bracketed paste, xterm's control sequences, mode 2004). To
/// be called before the terminal is made to give single keys.
void begin_editing();

/// The terminal is as it was before begin_editing; nothing, where no line is edited. Any thread may call it at any time.
void end_editing();

}  // namespace rlx::command
