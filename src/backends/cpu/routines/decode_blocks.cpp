// The values of weights in blocks, where something else than a product reads them.
#include <algorithm>

#include "backends/cpu/machine/denormals.h"
#include "backends/cpu/routines/routine.h"
#include "quant/block_format.h"

namespace rlx::cpu {
namespace {

void decode(const RoutineCall& call) {
  const BlockFormat& format = *find_block_format(std::get<std::string>(call.attrs[0]));
  const std::int64_t blocks = call.operands[0].size() / format.bytes, worth_a_thread = std::max<std::int64_t>(4096 / format.values, 1);
  call.pool.parallel_for(blocks, worth_a_thread, [&](std::int64_t begin, std::int64_t end, int) {
    const KeepDenormals keep;  // scales are f16 numbers, the least of which are subnormal
    format.decode(call.operands[0].bytes + begin * format.bytes, call.results[0].as<float>() + begin * format.values,
                  (end - begin) * format.values);
  });
}

bool takes(const Graph&, const Node&) { return true; }

const RegisterRoutine decode_blocks_routine({"decode_blocks", takes, decode});

}  // namespace
}  // namespace rlx::cpu
