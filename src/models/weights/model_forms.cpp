#include "models/weights/model_forms.h"

#include "models/config/model_folder.h"
#include "models/families/export/folder_config.h"
#include "models/families/gguf/gguf_decoder.h"

namespace rlx {

std::string architecture_of(const std::filesystem::path& path, const DecoderFiles& model) {
  if (const GgufFile* file = model.checkpoint.gguf()) return std::string(file->value("general.architecture").string());
  return std::string(gguf_architecture(ModelFolder::open(path).model_type(), model.config.causal));
}

ModelForms ModelForms::of(const std::filesystem::path& path, const DecoderFiles& model) {
  if (const GgufFile* file = model.checkpoint.gguf()) {
    const FolderConfig folder = FolderConfig::of(*file, model.config);
    return {folder.model, model.config, folder.names, model.names};
  }
  const std::string architecture = architecture_of(path, model);
  const DecoderConfig written = gguf_form(model.config, architecture);
  return {model.config, written, model.names, gguf_names(written, GgufLayout::of(architecture, written, model.names))};
}

}  // namespace rlx
