#pragma once
#include <csignal>

namespace rlx::command {

/// While it lives Ctrl-C only notes that it was pressed; then it is again what it was. One at a time.
class AnswerInterrupt {
 public:
  AnswerInterrupt();
  ~AnswerInterrupt();
  AnswerInterrupt(const AnswerInterrupt&) = delete;
  AnswerInterrupt& operator=(const AnswerInterrupt&) = delete;

  bool pressed() const;

 private:
  struct sigaction before_ = {};
};

}  // namespace rlx::command
