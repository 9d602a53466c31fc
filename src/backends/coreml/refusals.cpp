#include "backends/coreml/refusals.h"

#include "backends/coreml/made_program.h"

namespace rlx::coreml {

/// The message without what it is about: "coreml: WHAT: REASON (allowed: ...)".
std::set<std::string> refusals(const Graph& graph) {
  try {
    make_program({graph, {}}, {});
    return {};
  } catch (const Error& error) {
    std::string reason = error.what();
    for (int i = 0; i < 2; ++i)
      if (const std::size_t at = reason.find(": "); at != std::string::npos) reason.erase(0, at + 2);
    return {reason.substr(0, reason.find(" (allowed: "))};
  }
}

}  // namespace rlx::coreml
