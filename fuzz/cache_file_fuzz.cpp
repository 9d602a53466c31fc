// Saved sessions: what a file says that a model's caches hold.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "fuzz_folder.h"
#include "models/run/caches/cache_file.h"
#include "parts.h"
#include "rlx/session.h"
#include "zero_weights.h"

namespace {

constexpr rlx::CachedDecoder::Options options{.context = 512, .chunk = 8};

/// A convolution, whose state stands for all tokens, attention that keeps a window in a ring, and attention that keeps all.
rlx::DecoderConfig small_config() {
  rlx::DecoderConfig c;
  c.vocab_size = 8, c.hidden_size = 4, c.max_positions = options.context, c.heads = 2, c.kv_heads = 1, c.head_size = 2, c.ffn_size = 4;
  c.layers = {{.mixer = rlx::Mixer::short_convolution, .rope = -1}, {.window = 16, .rope = -1}, {.rope = -1}};
  return c;
}

/// A decoder whose weights are zeros.
rlx::CachedDecoder make_decoder() {
  static const rlx::Session session(rlx::Device::cpu(), {.threads = 1, .cache_folder = ""});
  const rlx::DecoderConfig config = small_config();
  const rlx::NamedArrays weights = rlx::fuzz::zero_weights(config);
  std::vector<rlx::TensorView> tensors;
  for (const auto& [name, array] : weights) tensors.push_back(rlx::view_of(name, array));
  return {session, {config, {}, rlx::Checkpoint::of("zeros", {{"zeros", tensors, nullptr}})}, options};
}

rlx::CachedDecoder& the_decoder() {
  static rlx::CachedDecoder decoder = make_decoder();
  return decoder;
}

}  // namespace

/// Compiles before any input, whose time is limited.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  the_decoder();
  return 0;
}

/// The input is a cache, see safetensors_of. What is refused changes nothing; behind what is accepted the model goes on.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  rlx::CachedDecoder& decoder = the_decoder();
  folder.write("cache", rlx::fuzz::safetensors_of({reinterpret_cast<const char*>(data), size}));
  const std::vector<std::int32_t> before(decoder.ids().begin(), decoder.ids().end());
  try {
    rlx::read_cache(folder.path() / "cache", decoder, "fuzz");
  } catch (const rlx::Error&) {
    if (!std::ranges::equal(decoder.ids(), before)) __builtin_trap();
    return 0;
  }
  if (std::ssize(decoder.ids()) >= options.context) return 0;
  decoder.append(std::vector<std::int32_t>{1});
  decoder.rewind(std::ssize(decoder.ids()) / 2);
  decoder.append(std::vector<std::int32_t>{2, 3});
  rlx::write_cache(folder.path() / "cache", decoder, "fuzz", {});
  rlx::read_cache(folder.path() / "cache", decoder, "fuzz");
  return 0;
}
