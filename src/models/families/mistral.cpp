// Mistral: Llama, every layer of which may look back over a window.
#include "models/config/rope_config.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

const DecoderFamily mistral_family(
    {"mistral", "ministral"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      c.qkv_bias = c.attention_output_bias = false;
      c.ropes = {read_rope(config, c.head_size)};
      read_windows(config, c, [](std::size_t) { return true; });
      return c;
    },
    llama_names, write_llama);

}  // namespace
}  // namespace rlx
