// Mamba 2: nothing but state spaces of heads.
#include <cmath>

#include "models/config/config_field.h"
#include "models/families/decoder_family.h"
#include "models/families/recurrent/mamba.h"

namespace rlx {
namespace {

DecoderConfig read_mamba2(const JsonField& config) {
  DecoderConfig c = read_mamba_base(config, Mixer::state_space_heads);
  StateSpaceConfig& s = c.state_space;
  s.heads = part_size(config.at("num_heads"));
  s.groups = size_or(config, "n_groups", 1);
  s.width = s.heads * part_size(config.at("head_dim"));
  if (s.heads % s.groups != 0) config.at("n_groups").refuse("{} do not divide {} heads", s.groups, s.heads);
  read_step_limits(config, s);
  c.tied_output = flag_or(config, "tie_word_embeddings", false);
  return c;
}

WeightNames mamba2_names(const DecoderConfig& config) {
  WeightNames names = mamba_names(config);
  names.layer.push_back({{"state_space.gate", "state_space.input", "state_space.step"}, "mixer.in_proj"});
  names.layer.push_back({{"state_space.step_bias"}, "mixer.dt_bias"});
  names.layer.push_back({{"state_space.norm"}, "mixer.norm"});
  return names;
}

json::Value write_mamba2(const DecoderConfig& c) {
  const StateSpaceConfig& s = c.state_space;
  json::Value out = state_space_fields(c);
  out["num_heads"] = s.heads, out["head_dim"] = s.width / s.heads;
  out["n_groups"] = s.groups;
  if (s.least_step > 0 || std::isfinite(s.largest_step)) out["time_step_limit"] = {s.least_step, s.largest_step};
  return out;
}

const DecoderFamily mamba2_family({"mamba2"}, read_mamba2, mamba2_names, write_mamba2);

}  // namespace
}  // namespace rlx
