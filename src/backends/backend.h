#pragma once
#include <string>

#include "lowering/target.h"
#include "rlx/session.h"

namespace rlx {

/// What a device brings: a folder beside this file, which src/runtime/device.cpp names.
struct Backend {
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// See Device.
  virtual std::string description() const = 0;
  /// What a session with these options makes programs for. Throws Error where they name what the device does not have.
  virtual TargetDevice target(const SessionOptions& options) const = 0;
};

}  // namespace rlx
