#include "models/families/mixture.h"

#include "models/config/config_field.h"

namespace rlx {

void check_experts(const JsonField& config, const ExpertsConfig& experts) {
  if (experts.count < 1 || experts.chosen < 1 || experts.chosen > experts.count)
    config.refuse("a token takes {} of {} experts (allowed: 1 to all of them)", experts.chosen, experts.count);
}

bool groups_suffice(const ExpertsConfig& e) {
  return e.groups >= 1 && e.count % e.groups == 0 && e.chosen_groups >= 1 && e.chosen_groups <= e.groups &&
         e.count / e.groups >= e.group_judges && e.chosen <= e.count / e.groups * e.chosen_groups;
}

std::int64_t expert_count(const JsonField& config, std::string_view name) {
  for (std::string_view other : {"num_local_experts", "num_experts"})
    if (const auto found = config.find(other); found && !config.find(name)) return as_size(*found);
  return as_size(config.at(name));
}

void read_sparse_layers(const JsonField& config, DecoderConfig& c) {
  c.experts.count = expert_count(config, "num_experts");
  c.experts.chosen = as_size(config.at("num_experts_per_tok"));
  c.experts.width = as_size(config.at("moe_intermediate_size"));
  c.experts.normalize = flag_or(config, "norm_topk_prob", false);
  check_experts(config, c.experts);
  const auto step = static_cast<std::size_t>(size_or(config, "decoder_sparse_step", 1));
  for (std::size_t i = 0; i < c.layers.size(); ++i) c.layers[i].experts = (i + 1) % step == 0;
  const auto dense = config.find("mlp_only_layers");
  if (!dense) return;
  for (const JsonField& layer : dense->items()) c.layers[layer.as_integer(0, c.layers.size() - 1)].experts = false;
}

void write_sparse_layers(const DecoderConfig& c, json::Value& out) {
  out["num_experts"] = c.experts.count;
  out["num_experts_per_tok"] = c.experts.chosen;
  out["moe_intermediate_size"] = c.experts.width;
  out["norm_topk_prob"] = c.experts.normalize;
  if (c.experts.shared_width > 0) out["shared_expert_intermediate_size"] = c.experts.shared_width;
  out["decoder_sparse_step"] = 1;
  out["mlp_only_layers"] = json::Value::array();
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    if (!c.layers[i].experts) out["mlp_only_layers"].push_back(i);
}

WeightNames mixture_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  for (const WeightName& line : std::vector<WeightName>{{{"experts.router"}, "mlp.gate"},
                                                        {{"experts.gate"}, "mlp.experts.{e}.gate_proj"},
                                                        {{"experts.up"}, "mlp.experts.{e}.up_proj"},
                                                        {{"experts.down"}, "mlp.experts.{e}.down_proj"},
                                                        {{"experts.shared.gate"}, "mlp.shared_expert.gate_proj"},
                                                        {{"experts.shared.up"}, "mlp.shared_expert.up_proj"},
                                                        {{"experts.shared.down"}, "mlp.shared_expert.down_proj"},
                                                        {{"experts.shared_gate"}, "mlp.shared_expert_gate"}})
    names.layer.push_back(line);
  return names;
}

}  // namespace rlx
