#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fixture.h"
#include "formats/tensors/safetensors.h"
#include "rlx/session.h"

// A session and tokens for the models of the fixtures, and how far apart the logits behind them are.

namespace rlx::test {

using Ids = std::vector<std::int32_t>;

/// One for all tests of a program, which share what it has compiled.
inline const Session& session() {
  static const Session one;
  return one;
}

/// What a session compiled, or had instead.
inline std::int64_t kernels_of(const Session& session) {
  const CompileCounters counters = session.counters();
  return counters.kernels_compiled + counters.kernels_from_disk + counters.kernels_shared;
}

/// Part of one sequence without an end, from its place `first` on.
inline Ids some_ids(std::size_t length, std::size_t first = 0) {
  Ids ids;
  for (std::size_t i = first; i < first + length; ++i) ids.push_back(static_cast<std::int32_t>((i * 37 + i * i * 11 + 5) % 120));
  return ids;
}

/// Infinite where there are not as many of both.
inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

/// How far apart two runs of a fixture's model may be that sum in different orders: each is as far from the exact logits as the recorded
/// run in f32 is from the one in f64.
inline double f32_distance(const std::string& name) {
  const SafetensorsFile recorded = SafetensorsFile::open(fixture(name + "/expected.safetensors"));
  const Array narrow = recorded.array("logits"), wide = recorded.array("logits_f64");
  double largest = 0;
  for (std::int64_t i = 0; i < narrow.size(); ++i)
    largest = std::max(largest,
                       std::abs(narrow.values<float>()[static_cast<std::size_t>(i)] - wide.values<double>()[static_cast<std::size_t>(i)]));
  return 2 * largest;
}

}  // namespace rlx::test
