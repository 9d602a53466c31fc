#include "ir/rearranges.h"

#include <algorithm>

#include "ir/op.h"

namespace rlx {

bool rearranges(const GraphData& graph, const Node& node) {
  const bool reads_elsewhere = (node.op->sources || node.op->address) && !node.operands.empty();
  const auto is_place = [&](ValueId v) { return is_integer(graph.type(v).dtype); };
  return reads_elsewhere && std::all_of(node.operands.begin() + 1, node.operands.end(), is_place);
}

}  // namespace rlx
