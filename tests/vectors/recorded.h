#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "fixture.h"
#include "formats/json/json.h"
#include "formats/tensors/safetensors.h"
#include "ir/parts.h"
#include "ir/reference.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"

// Comparing our results with values that other implementations recorded.
namespace rlx::test {

/// How far a float may be off: `relative` times itself, plus `scaled` times the largest finite element of the recorded tensor.
struct Tolerance {
  double relative = 0, scaled = 0;
};

/// A cast, a copy, a comparison: one rounding at most, the same one as recorded.
inline constexpr Tolerance exact{0, 0};
/// f32, a few nodes, each rounded once (6e-8), sums of up to a hundred terms and cancellation against the largest element.
inline constexpr Tolerance f32_nodes{2e-6, 2e-6};
/// f64: the same number of roundings, of 1.1e-16; matrices of condition up to 1e3 in the recorded cases.
inline constexpr Tolerance f64_nodes{1e-11, 1e-11};

inline double largest_finite(const Array& array) {
  double largest = 0;
  for (std::int64_t i = 0; i < array.size(); ++i) {
    const double size = std::abs(array.get_complex(i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

inline bool within(double seen, double wanted, double relative, double absolute) {
  if (std::isnan(wanted) || std::isnan(seen)) return std::isnan(wanted) && std::isnan(seen);
  if (std::isinf(wanted) || std::isinf(seen)) return seen == wanted;
  return std::abs(seen - wanted) <= relative * std::abs(wanted) + absolute;
}

/// Shape, dtype and elements. Integers and bool must be equal; of floats NaN must be NaN and infinities equal.
inline bool expect_recorded(const Array& seen, const Array& wanted, Tolerance tolerance, const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_EQ(name(seen.dtype()), name(wanted.dtype()));
  EXPECT_EQ(seen.shape(), wanted.shape());
  if (seen.dtype() != wanted.dtype() || seen.shape() != wanted.shape()) return false;
  const bool number = is_float(wanted.dtype()), pair = is_complex(wanted.dtype());
  const double absolute = number || pair ? tolerance.scaled * largest_finite(wanted) : 0;
  int wrong = 0;
  for (std::int64_t i = 0; i < wanted.size() && wrong < 3; ++i) {
    const std::complex<double> a = number || pair ? seen.get_complex(i) : 0, b = number || pair ? wanted.get_complex(i) : 0;
    const bool good =
        pair     ? within(a.real(), b.real(), tolerance.relative, absolute) && within(a.imag(), b.imag(), tolerance.relative, absolute)
        : number ? within(seen.get_double(i), wanted.get_double(i), tolerance.relative, absolute)
                 : seen.get_uint(i) == wanted.get_uint(i);
    if (good) continue;
    ++wrong;
    ADD_FAILURE() << "element " << i << ": " << (number ? seen.get_double(i) : a.real()) << (pair ? " " + std::to_string(a.imag()) : "")
                  << " instead of " << (number ? wanted.get_double(i) : b.real()) << (pair ? " " + std::to_string(b.imag()) : "")
                  << " (integers: " << seen.get_int(i) << ", " << wanted.get_int(i) << ")";
  }
  return wrong == 0;
}

/// One session for a whole test, on the device that RLX_DEVICE names: equal kernels are compiled once, nothing is kept on disk.
inline const Session& recorded_session() {
  static const Session session(Device::usual(), {.threads = 1, .cache_folder = std::filesystem::path()});
  return session;
}

/// Graphs that are compiled some as one program, as starting a compiler costs more than a kernel.
class RecordedProgram {
 public:
  using Wanted = std::vector<std::pair<Array, Tolerance>>;

  RecordedProgram() = default;
  RecordedProgram(const RecordedProgram&) = delete;
  RecordedProgram& operator=(const RecordedProgram&) = delete;
  ~RecordedProgram() { run(); }

  /// `name`: no other's.
  void add(const std::string& name, const Graph& graph, const std::map<std::string, Array>& inputs, const Wanted& wanted) {
    add_part(graph_, graph, name + "/");
    for (const auto& [input, array] : inputs) feeds_.emplace(name + "/" + input, array);
    wanted_.insert(wanted_.end(), wanted.begin(), wanted.end());
    constexpr int together = 24;
    if (++graphs_ == together) run();
  }

 private:
  /// Kernels' functions may be off by 4 units in the last place where the reference is off by one, so they get four times the tolerance.
  void run() {
    if (graphs_ == 0) return;
    try {
      const Outputs results = recorded_session().compile(graph_).run(feeds_);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const auto& [wanted, tolerance] = wanted_[i];
        expect_recorded(results[i], wanted, {4 * tolerance.relative, 4 * tolerance.scaled}, "compiled " + graph_.outputs()[i].first);
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << "compiled, from " << graph_.outputs().front().first << " on: " << error.what();
    }
    graph_ = Graph();
    feeds_.clear();
    wanted_.clear();
    graphs_ = 0;
  }

  Graph graph_;
  std::map<std::string, Feed> feeds_;
  Wanted wanted_;
  int graphs_ = 0;
};

/// A graph whose inputs are bound to recorded arrays, and which results are expected of it.
class RecordedGraph {
 public:
  Value input(const std::string& name, const Array& value) {
    bound_[name] = value;
    return graph_.input(name, Dims(value.shape().begin(), value.shape().end()), value.dtype());
  }
  /// A null value stands for zeros.
  void expect(const std::string& name, Value value, const Array& wanted, Tolerance tolerance) {
    if (!value) {
      for (std::int64_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(std::abs(wanted.get_complex(i)), 0) << name;
      return;
    }
    graph_.output(name, value);
    wanted_.push_back({wanted, tolerance});
  }
  /// Evaluates on the host, and if that is right also in `compiled`, unless it is null.
  void check(const std::string& name, RecordedProgram* compiled) const {
    std::map<std::string, Array> used;
    for (const auto& [input, value] : graph_.inputs()) used[input.name] = bound_.at(input.name);
    const std::vector<Array> seen = evaluate(graph_, used);
    bool good = true;
    for (std::size_t i = 0; i < seen.size(); ++i)
      good &= expect_recorded(seen[i], wanted_[i].first, wanted_[i].second, graph_.outputs()[i].first);
    if (compiled && good) compiled->add(name, graph_, used, wanted_);
  }

 private:
  Graph graph_;
  std::map<std::string, Array> bound_;
  RecordedProgram::Wanted wanted_;
};

}  // namespace rlx::test
