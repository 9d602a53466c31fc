#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/array.h"
#include "rlx/graph.h"
#include "rlx/transform.h"

namespace rlx {

/// A function of the program that a graph calls when it runs. Operands are to be read only, and are gone when it returns. It may be called
/// from any thread, more often or less often than the graph says, so that nothing but its results may depend on it; what it throws ends
/// the run.
using HostFunction = std::function<std::vector<Array>(std::span<const Array> operands)>;

/// The results of `function`, of the types that are given; sizes may be symbols of the operands. The host calls it, whatever the device. It
/// has no derivative (`custom_jvp` and `custom_vjp` give it one); `vmap` calls it for one example after another. It is kept as long as the
/// process, and a graph that calls it has no meaning in another one. A run throws Error where a result has another type.
Values host_call(HostFunction function, const Values& operands, const std::vector<Type>& results);

/// `body` as an op of that name, for which kernels can be registered. Derivatives and batches are those of the body. What the body captures
/// becomes further operands, behind its own.
Function custom_op(std::string name, Function body);

/// A function of the program that computes an op: its operands, and its attributes by name, of which custom ops have none. What is said of
/// HostFunction holds.
using HostKernel = std::function<std::vector<Array>(std::span<const Array> operands, const std::map<std::string_view, Attr>& attributes)>;

/// From now on, `kernel` computes each `op` of a graph that a session compiles for `device`, as `host_call` would: one of RLX (`rlx ops`
/// lists them) or of `custom_op`. `device` is a name, such as "cpu" or "coreml:ane", or a kind, such as "coreml". Ops inside of composites
/// count as parts of these. The last one registered counts; null takes it back. Throws Error for an op that has parts, such as scan, and
/// for a device that RLX knows nothing of.
void register_kernel(std::string_view op, std::string_view device, HostKernel kernel);

/// How often any was registered or taken back: what was compiled at another number may call others.
std::uint64_t registrations();

}  // namespace rlx
