#pragma once
#include "backends/cpu/routines/routine.h"

namespace rlx::cpu {

/// How far one step along an axis of the updates goes in each array.
struct ScatterAxis {
  std::int64_t extent = 1, update = 0, result = 0, index = 0;
};

/// Where the updates of a scatter go: along each of their axes the place in the result moves, the window's start is read elsewhere in the
/// indices, or both.
class ScatterPlaces {
 public:
  explicit ScatterPlaces(const RoutineCall& call);

  /// Of the updates, at least one; neighbours that act as one are one.
  const std::vector<ScatterAxis>& axes() const { return axes_; }
  /// Where n windows start in the result, whose starts lie at `index` and every `step` behind it; negative: it is dropped.
  void starts(std::int64_t index, std::int64_t step, std::int64_t n, std::int64_t* to) const { read_(*this, index, step, n, to); }
  /// Whether two windows are equal or have nothing in common.
  bool are_apart() const { return apart_; }
  /// Windows start at multiples of `unit` elements, in each stretch of `span` elements of the result alike.
  std::int64_t unit() const { return unit_; }
  std::int64_t span() const { return span_; }

 private:
  struct Component {
    std::int64_t last, stride;  // the last start that is inside, the result's stride
  };
  template <class I>
  static void read(const ScatterPlaces& places, std::int64_t index, std::int64_t step, std::int64_t n, std::int64_t* to);
  void find_window_places(const std::vector<std::int64_t>& shape, const std::vector<bool>& fixed);
  void merge_axes();

  const std::byte* indices_;
  bool drops_;
  bool apart_ = true;
  std::int64_t unit_ = 1, span_ = 1;
  std::vector<ScatterAxis> axes_;
  std::vector<Component> components_;
  void (*read_)(const ScatterPlaces&, std::int64_t, std::int64_t, std::int64_t, std::int64_t*) = nullptr;
};

}  // namespace rlx::cpu
