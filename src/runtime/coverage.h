#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/op.h"

namespace rlx {

struct Backend;
struct TargetDevice;

/// A kind of devices, whether or not one is at hand.
struct DeviceKind {
  std::string name;
  std::function<std::set<std::string>(const Graph&)> refusals;  // why it leaves a part of the graph to the host; none: it computes all
};
/// One for which programs are lowered; one that takes whole graphs.
DeviceKind kind_by_kernels(TargetDevice target);
DeviceKind kind_by_graphs(const Backend& backend);
/// All that RLX computes or exports for, but those that take whole graphs by a library that is not there.
std::vector<DeviceKind> device_kinds();

/// What programs for browsers are made for: any device of WebGPU.
TargetDevice web_target();

/// What becomes of an op's samples on elements of one type, which is that of the first operand, or else of the first result.
struct CoverageCell {
  int computed = 0, refused = 0;
  std::set<std::string> reasons;
};
struct OpCoverage {
  const OpDef* op;
  std::map<DType, std::vector<CoverageCell>> by_type;  // those that the op takes; by device kind
};

/// Every registered op, by compiling its samples, the first of them with all types.
std::vector<OpCoverage> coverage(const std::vector<DeviceKind>& kinds);

/// How packages of CoreML hold weights in blocks: a table in Markdown.
std::string coreml_block_forms();

}  // namespace rlx
