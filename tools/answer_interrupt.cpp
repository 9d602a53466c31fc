#include "answer_interrupt.h"

namespace rlx::command {
namespace {

volatile std::sig_atomic_t interrupt_pressed = 0;

void note_interrupt(int) { interrupt_pressed = 1; }

}  // namespace

AnswerInterrupt::AnswerInterrupt() {
  interrupt_pressed = 0;
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &before_);
}

AnswerInterrupt::~AnswerInterrupt() { sigaction(SIGINT, &before_, nullptr); }

bool AnswerInterrupt::pressed() const { return interrupt_pressed != 0; }

}  // namespace rlx::command
