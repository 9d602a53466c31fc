#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace rlx::sampling {

struct Candidate {
  std::int32_t id;
  float score;  // a logit, changed by the steps before
};

/// Tokens that may still be drawn: never none. Every step keeps the likeliest of equal tokens first, by the lower id.
class Candidates {
 public:
  /// All tokens whose score is not -infinity. Throws Error where that is none.
  explicit Candidates(std::span<const float> scores);

  std::span<const Candidate> all() const { return items_; }
  Candidate best() const;

  /// The `count` with the highest scores.
  void keep_top(std::size_t count);
  /// The fewest of the highest that have `mass` of the probability together.
  void keep_mass(double mass);
  /// Those of at least `ratio` times the highest probability.
  void keep_ratio(double ratio);
  /// The fewest whose information is nearest to the entropy, that have `mass` together (Meister et al., "Locally typical sampling", 2023).
  void keep_typical(double mass);
  /// Drops all but the least likely of the tokens of at least `threshold` (exclude top choices).
  void drop_top(double threshold);
  /// Those of at most `bits` of surprise; at least the best.
  void keep_surprise(double bits);

  void divide(double temperature);
  /// In nats.
  double entropy() const;
  std::vector<double> probabilities() const;
  /// The probabilities of the `count` highest, descending.
  std::vector<double> top_probabilities(std::size_t count);

  /// The index in all() where the sum of probabilities, in order of ids, passes `unit` in [0, 1).
  std::size_t draw(double unit);

 private:
  void sort_by_id();
  /// Sorts by `before` as far as `enough`, which sees one candidate after the other, and drops the rest behind the one that it says yes to.
  void keep_until(const std::function<bool(const Candidate&, const Candidate&)>& before,
                  const std::function<bool(const Candidate&)>& enough);
  /// Sum of exp(score - highest).
  double mass_above(float highest) const;

  std::vector<Candidate> items_;
  bool by_id_ = true;
};

}  // namespace rlx::sampling
