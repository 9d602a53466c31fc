#pragma once
#include <functional>
#include <span>
#include <vector>

#include "rlx/array.h"
#include "rlx/graph.h"

namespace rlx {

/// A function of the program that a graph calls when it runs. Operands are to be read only, and are gone when it returns. It may be called
/// from any thread, more often or less often than the graph says, so that nothing but its results may depend on it; what it throws ends
/// the run.
using HostFunction = std::function<std::vector<Array>(std::span<const Array> operands)>;

/// The results of `function`, of the types that are given; sizes may be symbols of the operands. The host calls it, whatever the device. It
/// has no derivative (`custom_jvp` and `custom_vjp` give it one); `vmap` calls it for one example after another. It is kept as long as the
/// process, and a graph that calls it has no meaning in another one. A run throws Error where a result has another type.
Values host_call(HostFunction function, const Values& operands, const std::vector<Type>& results);

}  // namespace rlx
