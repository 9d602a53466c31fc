#pragma once
#include "base/names.h"
#include "rlx/convert.h"
#include "say.h"

namespace rlx::command {

/// Says on stderr what a file that was written cannot hold of its source.
inline void warn_about_losses(const QuantizeReport& report) {
  if (report.losses.empty()) return;
  say("rlx: GGUF files cannot say all of {} tokens, so texts may become other ones: {}\n", report.losses.size(), some_names(report.losses));
}

}  // namespace rlx::command
