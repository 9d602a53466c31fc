#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "rlx/sampling.h"
#include "rlx/session.h"

namespace rlx::sampling {

/// Chooses tokens on the device on which the logits lie, by the steps and the random numbers of a Sampler, so that one integer crosses
/// for each; those of several sequences together. Sums are of f64 where the device multiplies it, else of f32: a draw that falls where two
/// tokens meet may then be the other's.
class DeviceSampler {
 public:
  DeviceSampler(Session session, std::int64_t vocabulary) : session_(std::move(session)), vocabulary_(vocabulary) {}

  /// Whether it chooses as these options ask, from such logits: (1, rows, vocabulary) on a device with memory of its own.
  static bool can_choose(const SamplingOptions& options, const Array& logits);
  /// What a token is chosen by: a row of the logits, and a random number in 0..1 without 1.
  struct Draw {
    std::int64_t row;
    double unit;
  };
  /// The token behind each of these rows, no more of them than the logits have. Nothing for logits that a Sampler refuses.
  std::vector<std::optional<std::int32_t>> choose(const SamplingOptions& options, const Array& logits, std::span<const Draw> draws);

 private:
  const Executable& compiled(const SamplingOptions& options);

  Session session_;
  std::int64_t vocabulary_;
  DType wide_ = f32;
  std::map<std::int64_t, Executable> compiled_;  // by how candidates are ordered
};

}  // namespace rlx::sampling
