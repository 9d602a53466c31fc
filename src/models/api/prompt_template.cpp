#include "models/config/model_chat_template.h"

namespace rlx {

PromptTemplate PromptTemplate::open(const std::filesystem::path& path, std::string_view variant) {
  return PromptTemplate(std::make_shared<const ChatTemplate>(ChatTemplate::open(path, variant)));
}

std::string PromptTemplate::prompt(std::string_view messages, const ChatOptions& options) const {
  return template_->prompt(Chat::from_text(messages, options.messages_file), options);
}

}  // namespace rlx
