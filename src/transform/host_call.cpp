#include "ops/control/host_call.h"

#include "ir/op.h"

namespace rlx {

Values host_call(HostFunction function, const Values& operands, const std::vector<Type>& results) {
  return apply(find_op("host_call"), {keep_host_function({std::move(function), results})}, operands);
}

}  // namespace rlx
