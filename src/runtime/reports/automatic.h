#pragma once
#include <vector>

#include "lowering/program.h"
#include "rlx/session.h"

namespace rlx {

/// What a run of a program is expected to take on a device: of each launch the longer of computing and moving, and what crosses.
/// `remote`: the device has memory of its own; `host`: the figures of the CPU, which computes what no kernel does.
DeviceEstimate estimate(const Program& program, const Bindings& sizes, bool remote, const DeviceFigures& figures,
                        const DeviceFigures& host);

}  // namespace rlx
