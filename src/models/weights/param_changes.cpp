#include "models/weights/param_changes.h"

#include <cmath>
#include <string_view>

#include "models/families/layer_name.h"
#include "rlx/error.h"

namespace rlx {
namespace {

float negated_exp(float value) { return -std::exp(value); }
float log_of_negated(float value) { return std::log(-value); }
float plus_one(float value) { return value + 1; }
float minus_one(float value) { return value - 1; }

/// Where halves of a head are apart: the row that stands at `row` where those that turn together are neighbours.
std::int64_t row_apart(std::int64_t row, std::int64_t head_size) {
  const std::int64_t at = row % head_size;
  return row - at + at % 2 * (head_size / 2) + at / 2;
}

/// The inverse.
std::int64_t row_beside(std::int64_t row, std::int64_t head_size) {
  const std::int64_t at = row % head_size, half = head_size / 2;
  return row - at + at % half * 2 + at / half;
}

/// A table of (rows, columns) things of `size` each, told row by row: where the one that is at `at` when told column by column is.
std::int64_t by_rows(std::int64_t at, std::int64_t rows, std::int64_t columns, std::int64_t size) {
  const std::int64_t thing = at / size;
  return (thing % rows * columns + thing / rows) * size + at % size;
}

class Changes {
 public:
  Changes(const DecoderConfig& from, const DecoderConfig& to) : from_(from), to_(to) {}

  ParamChange operator()(const std::string& param) const {
    ParamChange change{.param = param};
    const auto in_layer = layer_name(param, "layers");
    const std::string_view name = in_layer ? in_layer->rest : param;
    if (name == "position_embedding.weight") change_positions(change);
    else if (name.starts_with("attention.q.") || name.starts_with("attention.k.")) change_heads(name, change);
    else if (name.starts_with("delta_net.")) change_delta_net(name, change);
    else if (name == "state_space.decay" || name == "state_space.log_decay")
      change_decay("state_space", from_.state_space.log_decay, change);
    else if (name.ends_with("norm.weight")) change_norm(change);
    return change;
  }

 private:
  void change_positions(ParamChange& change) const {
    if (const std::int64_t step = from_.first_position - to_.first_position; step != 0)
      change.row = [step](std::int64_t row) { return row + step; };
  }

  static bool neighbours_turn(const DecoderConfig& c) { return !c.ropes.empty() && c.ropes.front().style == RopeStyle::interleaved; }

  void change_heads(std::string_view name, ParamChange& change) const {
    const bool apart = neighbours_turn(from_) != neighbours_turn(to_);
    if (to_.latent.rank > 0) {
      if (apart) fail("latent attention whose halves of heads turn together cannot be converted (allowed: neighbours)");
      if (name == "attention.k.weight" && from_.latent.keys_by_feature != to_.latent.keys_by_feature)
        change.turned_rows = to_.latent.keys_by_feature ? to_.latent.rank : to_.latent.plain_size;
    } else if (apart) {
      const auto row = neighbours_turn(to_) ? row_apart : row_beside;
      change.row = [row, size = to_.head_size](std::int64_t at) { return row(at, size); };
    }
  }

  void change_norm(ParamChange& change) const {
    if (from_.norm.plus_one != to_.norm.plus_one) change.value = from_.norm.plus_one ? plus_one : minus_one;
  }

  /// `there`: the other form has the logarithm.
  void change_decay(std::string_view mixer, bool there, ParamChange& change) const {
    const bool here = change.param.ends_with("log_decay");
    if (there == here) return;
    const std::string layer = change.param.substr(0, change.param.find(mixer));
    change.param = fmt::format("{}{}.{}", layer, mixer, there ? "log_decay" : mixer == "delta_net" ? "decay_rate" : "decay");
    change.value = there ? negated_exp : log_of_negated;
  }

  void change_delta_net(std::string_view name, ParamChange& change) const {
    if (name == "delta_net.log_decay" || name == "delta_net.decay_rate") change_decay("delta_net", from_.delta_net.log_decay, change);
    if (from_.delta_net.heads_in_turn != to_.delta_net.heads_in_turn) reorder_value_heads(name, change);
  }

  /// Value heads lie by the key head that they share, or in turn, one of each key head after the other.
  void reorder_value_heads(std::string_view name, ParamChange& change) const {
    const DeltaNetConfig& d = to_.delta_net;
    const std::int64_t keys = d.key_heads, share = d.value_heads / d.key_heads, features = 2 * d.key_heads * d.key_size;
    const std::int64_t rows = d.heads_in_turn ? keys : share, columns = d.heads_in_turn ? share : keys;
    const auto in_order = [rows, columns](std::int64_t size) {
      return [rows, columns, size](std::int64_t at) { return by_rows(at, rows, columns, size); };
    };
    if (name == "delta_net.v.weight" || name == "delta_net.gate.weight") change.row = in_order(d.value_size);
    else if (name == "delta_net.output.weight") change.column = in_order(d.value_size);
    else if (name == "delta_net.convolution.weight")
      change.row = [features, values = in_order(d.value_size)](std::int64_t at) {
        return at < features ? at : features + values(at - features);
      };
    else if (name.find("decay") != std::string_view::npos || name == "delta_net.beta.weight") change.row = in_order(1);
  }

  DecoderConfig from_, to_;
};

}  // namespace

ParamChanges changes_between(const DecoderConfig& from, const DecoderConfig& to) { return Changes(from, to); }

}  // namespace rlx
