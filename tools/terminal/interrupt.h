#pragma once

namespace rlx::command {

/// From now on SIGINT (Ctrl-C), SIGTERM and SIGHUP end the process at once, wherever it is, after the temporary files of its writers are
/// removed and the terminal is as it was. Signals that the process was started to ignore (nohup) stay ignored. A mapped file that is cut
/// short while it is read (SIGBUS) gives one line and exit status 1, and one that may grow no more (SIGXFSZ) fails to be written. To be
/// called before there are other threads.
void remove_temporary_files_on_signals();

/// While it lives the first Ctrl-C is only noted; a second one ends the process as usual. One at a time.
class AnswerInterrupt {
 public:
  AnswerInterrupt();
  ~AnswerInterrupt();
  AnswerInterrupt(const AnswerInterrupt&) = delete;
  AnswerInterrupt& operator=(const AnswerInterrupt&) = delete;

  bool pressed() const;
};

/// Ends the process as Ctrl-C does, so that the parent sees it; after an AnswerInterrupt has noted one, and what was to be kept is.
[[noreturn]] void end_by_interrupt();

}  // namespace rlx::command
