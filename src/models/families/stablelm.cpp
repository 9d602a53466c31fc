// StableLM: Llama with layer norms, part of whose heads turns.
#include "models/config_field.h"
#include "models/decoder_family.h"
#include "models/families/llama.h"
#include "models/rope_config.h"

namespace rlx {
namespace {

const DecoderFamily stablelm_family(
    {"stablelm"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      if (flag_or(config, "qk_layernorm", false)) config.at("qk_layernorm").refuse("true is not supported (allowed: false)");
      c.norm = {.centred = true, .bias = true, .eps = number_or(config, "layer_norm_eps", 1e-5)};
      c.qkv_bias = flag_or(config, "use_qkv_bias", false), c.attention_output_bias = false;
      c.parallel = c.shared_norm = flag_or(config, "use_parallel_residual", false);
      c.ropes = {read_rope(config, c.head_size)};
      if (!config.find("partial_rotary_factor") && !config.find("rope_parameters"))
        c.ropes[0].dims = rotary_part(config, c.head_size, 0.25);
      return c;
    },
    llama_names);

}  // namespace
}  // namespace rlx
