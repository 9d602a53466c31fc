#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/coreml/device/driver.h"

namespace rlx::coreml {

/// One for each choice of units: coreml:all, coreml:cpu, coreml:gpu, coreml:ane.
std::unique_ptr<Backend> backend_of(Library& library, std::string units);

/// Those of this machine.
const std::vector<const Backend*>& backends();
/// Why there are none.
const std::string& missing();

}  // namespace rlx::coreml
