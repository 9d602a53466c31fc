// The files of a tokenizer's folder: what they say of the chat template and its tokens, and how they are written to a GGUF file.
#include <cstdint>

#include "formats/gguf/gguf_metadata.h"
#include "fuzz_folder.h"
#include "models/config/model_chat_template.h"
#include "models/conversion/gguf_vocabulary.h"
#include "parts.h"
#include "rlx/error.h"

/// The input is the files, with zero bytes between; those without a byte are not there, for some count before others.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "config.json", "special_tokens_map.json", "chat_template.jinja",
                           "chat_template.json", "additional_chat_templates/tool_use.jinja"})
    if (const std::string_view part = rlx::fuzz::take_part(rest); part.empty()) folder.remove(name);
    else folder.write(name, part);
  try {
    rlx::GgufMetadata metadata;
    rlx::describe_tokenizer(folder.path(), 300, metadata);
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  try {
    rlx::ChatTemplate::open(folder.path());
  } catch (const rlx::Error&) {  // as well
  }
  return 0;
}
