#pragma once

/// The terminal that a user types into.
namespace rlx::command {

/// Whether the terminal of standard output understands escape sequences.
bool understands_escapes();

/// Returns when the process is in the foreground. From then on it waits in the background, too, for what only the foreground may do with
/// the terminal: by itself the system would stop it, and again whenever it goes on, perhaps before a signal that is to end it does.
void wait_for_foreground();

/// A line is edited from now on, as soon as the process is in the foreground: the terminal puts marks around what is pasted (bracketed
/// paste, xterm's control sequences, mode 2004). To be called before the terminal is made to give single keys.
void begin_editing();

/// The terminal is as it was before begin_editing; nothing, where no line is edited, or in the background, where it is another's. Any
/// thread may call it at any time.
void end_editing();

}  // namespace rlx::command
