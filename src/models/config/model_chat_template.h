#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "formats/json/json.h"
#include "rlx/chat_template.h"
#include "text/template/template.h"

namespace rlx {

class GgufFile;

/// What a chat template is given, as the arguments of transformers' apply_chat_template.
struct Chat {
  json::Value messages;                           ///< an array of objects with `role` and, as a rule, `content`
  json::Value tools;                              ///< an array of JSON schemas, or null
  json::Value variables = json::Value::object();  ///< what else the template may ask for; wins over special tokens
  bool add_generation_prompt = false;

  std::string file = {}, tools_file = {};  ///< that messages and tools are from, for errors; empty: from none

  /// From an array of messages, or an object with `messages` and perhaps `tools`, `add_generation_prompt`, `special_tokens` and `kwargs`
  /// (objects whose members are variables) and other variables. Throws Error naming the file and the field.
  static Chat from_json(const json::Value& value, const std::string& file = {});
  /// The same of JSON, whose numbers must be exact.
  static Chat from_text(std::string_view text, const std::string& file = {});
};

/// The chat templates of a folder by name, "default" for the only one: of chat_template.jinja and additional_chat_templates/*.jinja, else
/// of chat_template.json and the field of tokenizer_config.json, as in transformers. None where there is none.
std::map<std::string, std::string> chat_templates_in(const std::filesystem::path& folder);

/// A model's chat template and its special tokens.
class ChatTemplate {
 public:
  /// As PromptTemplate::open: chat_template.jinja, chat_template.json, or `chat_template` of tokenizer_config.json in a folder.
  static ChatTemplate open(const std::filesystem::path& path, std::string_view variant = {});
  /// Of the metadata of a GGUF file.
  static ChatTemplate of(const GgufFile& file, std::string_view variant = {});

  /// `with_tools`: for chats with tools.
  ChatTemplate(jinja::Template source, jinja::Template with_tools, json::Value special_tokens)
      : template_(std::move(source)), with_tools_(std::move(with_tools)), special_tokens_(std::move(special_tokens)) {}
  ChatTemplate(const jinja::Template& source, json::Value special_tokens) : ChatTemplate(source, source, std::move(special_tokens)) {}

  /// As PromptTemplate::prompt.
  std::string prompt(Chat chat, const ChatOptions& options) const;
  /// The prompt. Before the template runs, members of messages that are null are dropped, and `reasoning_content`, `thinking` and
  /// `reasoning` stand for one another. Throws Error for a chat without messages, and for what the template refuses.
  std::string render(const Chat& chat, const jinja::RenderOptions& options) const;

  /// `bos_token` and the like: strings by name.
  const json::Value& special_tokens() const { return special_tokens_; }

 private:
  jinja::Template template_, with_tools_;
  json::Value special_tokens_;
};

}  // namespace rlx
