// Granite: Llama with four multipliers.
#include <cmath>

#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

json::Value write_granite(const DecoderConfig& c) {
  json::Value out = write_llama(c);
  out["embedding_multiplier"] = c.embedding_scale;
  out["residual_multiplier"] = c.residual_scale;
  out["attention_multiplier"] = c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_size));
  out["logits_scaling"] = 1 / c.logits_scale;
  return out;
}

const DecoderFamily granite_family(
    {"granite"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      c.ropes = {read_rope(config, c.head_size)};
      c.embedding_scale = number_or(config, "embedding_multiplier", 1);
      c.residual_scale = number_or(config, "residual_multiplier", 1);
      c.attention_scale = number_or(config, "attention_multiplier", 1);
      if (const auto divisor = config.find("logits_scaling")) c.logits_scale = 1 / as_number(*divisor, 1e-6, 1e6);
      return c;
    },
    llama_names, write_granite);

}  // namespace
}  // namespace rlx
