#include "models/families/export/folder_families.h"

#include "models/families/llama.h"

namespace rlx {
namespace {

/// Whether the file's tokenizer is RoBERTa's, which GGUF files tell from BERT's by nothing else.
bool has_pre_tokenizer(const GgufFile& file, std::string_view model, std::string_view pre) {
  const GgufValue* kind = file.find_value("tokenizer.ggml.model");
  const GgufValue* split = file.find_value("tokenizer.ggml.pre");
  return kind && kind->string() == model && split && split->string() == pre;
}

constexpr FolderFamily::Fits has_latent_experts = [](const GgufFile&, const DecoderConfig& c) {
  return c.latent.rank > 0 && c.experts.count > 0;
};
constexpr FolderFamily::Fits has_state_space_heads = [](const GgufFile&, const DecoderConfig& c) { return c.state_space.heads > 0; };
constexpr FolderFamily::Fits has_experts = [](const GgufFile&, const DecoderConfig& c) { return c.experts.count > 0; };
constexpr FolderFamily::Fits has_window = [](const GgufFile&, const DecoderConfig& c) { return widest_window(c) > 0; };

constexpr FolderFamily known_families[] = {
    {"mixtral", "llama", "Mixtral", has_experts},
    {"mistral", "llama", "Mistral", has_window},
    {"llama", "llama", "Llama"},
    {"ministral", "llama"},
    {"qwen2", "qwen2", "Qwen2"},
    {"qwen2_moe", "qwen2moe", "Qwen2Moe"},
    {"qwen3", "qwen3", "Qwen3"},
    {"qwen3_moe", "qwen3moe", "Qwen3Moe"},
    {"qwen3_next", "qwen3next", "Qwen3Next"},
    {"qwen3_5_text", "qwen35", "Qwen3_5"},
    {"qwen3_5", "qwen35"},
    {"gemma", "gemma", "Gemma"},
    {"gemma2", "gemma2", "Gemma2"},
    {"gemma3_text", "gemma3", "Gemma3"},
    {"gemma3_text", "gemma-embedding", "Gemma3Text"},
    {"gemma3", "gemma3"},
    {"phi3", "phi3", "Phi3"},
    {"phi", "phi2", "Phi"},
    {"gpt2", "gpt2", "GPT2"},
    {"gpt_neox", "gptneox", "GPTNeoX"},
    {"falcon", "falcon", "Falcon"},
    {"starcoder2", "starcoder2", "Starcoder2"},
    {"stablelm", "stablelm", "StableLm"},
    {"cohere", "command-r", "Cohere"},
    {"smollm3", "smollm3", "SmolLM3"},
    {"granite", "granite", "Granite"},
    {"arcee", "arcee", "Arcee"},
    {"olmo3", "olmo2", "Olmo3", has_window},
    {"olmo2", "olmo2", "Olmo2"},
    {"deepseek_v3", "deepseek2", "DeepseekV3",
     [](const GgufFile& file, const DecoderConfig& c) {
       return has_latent_experts(file, c) && c.experts.sigmoid && c.experts.router_bias;
     }},
    {"deepseek_v2", "deepseek2", "DeepseekV2", has_latent_experts},
    {"lfm2", "lfm2", "Lfm2"},
    {"lfm2_moe", "lfm2moe", "Lfm2Moe"},
    {"falcon_mamba", "mamba", "FalconMamba", [](const GgufFile&, const DecoderConfig& c) { return c.state_space.norm.has_value(); }},
    {"mamba", "mamba", "Mamba"},
    {"mamba2", "mamba2", "Mamba2", has_state_space_heads},
    {"jamba", "jamba", "Jamba"},
    {"roberta", "bert", "Roberta",
     [](const GgufFile& file, const DecoderConfig&) { return has_pre_tokenizer(file, "gpt2", "roberta-bpe"); }},
    {"xlm-roberta", "bert", "XLMRoberta",
     [](const GgufFile& file, const DecoderConfig&) { return has_pre_tokenizer(file, "t5", "default"); }},
    {"camembert", "bert"},
    {"distilbert", "bert", "DistilBert", [](const GgufFile&, const DecoderConfig& c) { return c.token_types == 0; }},
    {"bert", "bert", "Bert"},
    {"nomic_bert", "nomic-bert", "NomicBert"},
    {"modernbert", "modern-bert", "ModernBert"},
    {"t5", "t5"}};

}  // namespace

std::span<const FolderFamily> folder_families() { return known_families; }

}  // namespace rlx
