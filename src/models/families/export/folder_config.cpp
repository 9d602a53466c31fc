#include "models/families/export/folder_config.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/families/decoder_family.h"
#include "models/families/encoders/text_head.h"
#include "models/families/export/folder_families.h"
#include "models/families/export/same_model.h"

namespace rlx {
namespace {

const FolderFamily& folder_family(const GgufFile& file, const DecoderConfig& c) {
  const std::string_view architecture = file.value("general.architecture").string();
  std::vector<std::string_view> known;
  for (const FolderFamily& each : folder_families()) {
    if (!each.classes.empty() && each.architecture == architecture && each.fits(file, c)) return each;
    if (!each.classes.empty() && std::ranges::find(known, each.architecture) == known.end()) known.push_back(each.architecture);
  }
  fail("{}: the architecture {} has no folder in Hugging Face's layout here (supported: {})", file.name(), quote_name(architecture),
       fmt::join(known, ", "));
}

std::string class_name(const FolderFamily& family, const DecoderConfig& c) {
  if (family.model_type == "gpt2") return "GPT2LMHeadModel";
  const std::string_view what = c.causal                 ? "ForCausalLM"
                                : c.text_head.labels > 0 ? "ForSequenceClassification"
                                : c.output               ? "ForMaskedLM"
                                                         : "Model";
  return fmt::format("{}{}", family.classes, what);
}

void write_labels(const GgufFile& file, const DecoderConfig& c, json::Value& out) {
  json::Value::object_t labels;  // whose own insertion would look for each name among all before
  labels.reserve(static_cast<std::size_t>(c.text_head.labels));
  for (std::string& name : label_names(file, c.text_head.labels)) labels.emplace_back(std::to_string(labels.size()), std::move(name));
  out["id2label"] = std::move(labels);
}

}  // namespace

std::string_view gguf_architecture(std::string_view model_type, bool causal) {
  if (model_type == "gemma3_text" && !causal) return "gemma-embedding";
  std::vector<std::string_view> known;
  for (const FolderFamily& family : folder_families()) {
    if (family.model_type == model_type) return family.architecture;
    known.push_back(family.model_type);
  }
  fail("model type {} has no form in GGUF files here (supported: {})", quote_name(model_type), fmt::join(known, ", "));
}

void write_token_ids(const GgufFile& file, json::Value& out) {
  constexpr std::pair<std::string_view, const char*> roles[] = {
      {"bos", "bos_token_id"}, {"eos", "eos_token_id"}, {"padding", "pad_token_id"}};
  for (const auto& [role, field] : roles) {
    const GgufValue* id = file.find_value(fmt::format("tokenizer.ggml.{}_token_id", role));
    out[field] = id ? json::Value(id->integer(0, INT32_MAX)) : json::Value();  // what is left out would be the family's usual one
  }
}

FolderConfig FolderConfig::of(const GgufFile& file, const DecoderConfig& model) {
  const FolderFamily& family = folder_family(file, model);
  const DecoderFamily* reader = DecoderFamily::find(family.model_type);
  if (reader == nullptr) fail_internal("the family {} is listed and not found", family.model_type);
  FolderConfig out;
  out.json = reader->write(model);
  out.json["architectures"] = {class_name(family, model)};
  out.json["model_type"] = family.model_type;
  write_token_ids(file, out.json);
  if (model.text_head.labels > 0) write_labels(file, model, out.json);
  const json::Value written = json::parse(out.json.dump(), "config.json");  // as others will read it
  out.model = reader->read(JsonField(written, "config.json"));
  if (!same_model(model, out.model))
    fail("{}: config.json of the model type {} cannot say all that the metadata say of the model", file.name(),
         quote_name(family.model_type));
  out.names = reader->weight_names(out.model);
  if (model.causal || model.text_head.labels > 0 || model.output) out.prefix = out.names.prefix;
  return out;
}

}  // namespace rlx
