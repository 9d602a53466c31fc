#pragma once
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "backends/block_cases.h"
#include "formats/gguf/gguf_writer.h"

namespace rlx::test {

/// Sizes of a Llama whose heads are as wide as those of real ones, so that every kernel is of use.
struct RandomLlama {
  std::int64_t layers = 2, hidden = 256, heads = 4, kv_heads = 2, ffn = 512, vocabulary = 128, context = 2048;
  std::int64_t experts = 0;  // two of which a token takes; 0: none
};

/// The rows of a tensor: any blocks, or plain numbers, of a size that keeps attention from seeing one token alone.
inline std::vector<std::byte> random_rows(const BlockFormat& format, std::int64_t rows, std::int64_t columns) {
  if (format.values > 1) return random_blocks(format, rows, columns);
  std::vector<float> values = random_floats(rows * columns, static_cast<std::uint32_t>(rows * 3 + columns));
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(format.bytes));
  format.encode(values.data(), nullptr, bytes.data(), static_cast<std::int64_t>(values.size()));
  return bytes;
}

/// Writes it as a GGUF file whose matrices are of the format of that name.
inline void write_random_llama(const std::filesystem::path& path, std::string_view matrices, const RandomLlama& sizes = {}) {
  const BlockFormat *const plain = find_block_format("F32"), *const packed = find_block_format(matrices);
  std::vector<TensorView> tensors;
  const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    tensors.push_back({name, f32, {rows, columns}, {}, packed});
  };
  const auto norm = [&](const std::string& name) { tensors.push_back({name, f32, {sizes.hidden}, {}, plain}); };
  const auto experts = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    tensors.push_back({name, f32, {sizes.experts, rows, columns}, {}, packed});
  };
  matrix("token_embd.weight", sizes.vocabulary, sizes.hidden), norm("output_norm.weight");
  const std::int64_t kv = sizes.hidden / sizes.heads * sizes.kv_heads;
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    norm(block + "attn_norm.weight"), norm(block + "ffn_norm.weight");
    matrix(block + "attn_q.weight", sizes.hidden, sizes.hidden), matrix(block + "attn_k.weight", kv, sizes.hidden);
    matrix(block + "attn_v.weight", kv, sizes.hidden), matrix(block + "attn_output.weight", sizes.hidden, sizes.hidden);
    if (sizes.experts > 0) {
      tensors.push_back({block + "ffn_gate_inp.weight", f32, {sizes.experts, sizes.hidden}, {}, plain});
      experts(block + "ffn_gate_exps.weight", sizes.ffn, sizes.hidden), experts(block + "ffn_up_exps.weight", sizes.ffn, sizes.hidden);
      experts(block + "ffn_down_exps.weight", sizes.hidden, sizes.ffn);
    } else {
      matrix(block + "ffn_gate.weight", sizes.ffn, sizes.hidden), matrix(block + "ffn_up.weight", sizes.ffn, sizes.hidden);
      matrix(block + "ffn_down.weight", sizes.hidden, sizes.ffn);
    }
  }
  GgufMetadata metadata;
  metadata.set("general.architecture", "llama");
  for (const auto& [key, size] : {std::pair("block_count", sizes.layers),
                                  {"embedding_length", sizes.hidden},
                                  {"context_length", sizes.context},
                                  {"feed_forward_length", sizes.ffn},
                                  {"attention.head_count", sizes.heads},
                                  {"attention.head_count_kv", sizes.kv_heads},
                                  {"expert_count", sizes.experts},
                                  {"expert_used_count", std::int64_t{sizes.experts > 0 ? 2 : 0}}})
    metadata.set(std::string("llama.") + key, static_cast<std::uint32_t>(size));
  metadata.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  GgufWriter writer(path, metadata, tensors);
  for (const TensorView& tensor : tensors) {
    if (tensor.shape.size() == 1) {
      const std::vector<float> small(static_cast<std::size_t>(sizes.hidden), 0.05f);
      writer.write(std::as_bytes(std::span(small)));
      continue;
    }
    std::int64_t rows = 1;
    for (std::size_t axis = 0; axis + 1 < tensor.shape.size(); ++axis) rows *= tensor.shape[axis];
    writer.write(random_rows(*tensor.format, rows, tensor.shape.back()));
  }
  writer.commit();
}

}  // namespace rlx::test
