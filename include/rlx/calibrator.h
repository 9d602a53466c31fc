#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/calibration.h"
#include "rlx/session.h"

namespace rlx {

/// Runs a graph as written and notes the ranges of what its int8 products would read, for a session that computes them with constant
/// scales. A few hundred inputs like those to come are enough; without padding, as what stands for nothing is noted as well.
class Calibrator {
 public:
  /// Throws Error as `Session::compile`, and for a session of another precision than f32.
  Calibrator(const Session& session, const Graph& graph);

  /// The compiled graph, to bind parameters. Its runs give the ranges as further outputs.
  Executable& executable() { return executable_; }
  /// Notes the ranges of a run.
  void note(const Outputs& outputs);
  /// Throws Error where no run was noted, and for a product that read numbers that are not finite.
  Calibration calibration() const;

 private:
  Executable executable_;
  std::vector<CalibratedRange> ranges_;
  bool noted_ = false;
};

}  // namespace rlx
