#include "backends/cpu/backend.h"

namespace rlx {

Device Device::cpu() { return Device(cpu::backend()); }
std::string Device::description() const { return backend_->description(); }
bool Device::multiplies(DType dtype) const { return backend_->target({}).caps.multiplies(dtype); }

}  // namespace rlx
