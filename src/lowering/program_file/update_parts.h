#pragma once
#include "lowering/program_file/parts.h"
#include "lowering/state_update.h"

// What program files keep of the update of a state.

namespace rlx {

template <class Way>
void list_parts(Way& way, Of<Way, StateUpdate::Window>& window) {
  way("window", window.value), way("starts", window.starts);
}

template <class Way>
void list_parts(Way& way, Of<Way, StateUpdate::Windows>& windows) {
  way("windows", windows.value), way("starts", windows.starts), way("axes", windows.axes), way("inserted axes", windows.inserted);
}

template <class Way>
void list_parts(Way& way, Of<Way, StateUpdate>& update) {
  way("state", update.state), way("result", update.result), way("chain", update.chain), way("windows", update.windows);
}

}  // namespace rlx
