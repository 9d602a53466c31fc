#pragma once
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rlx {

/// What a chat template is given beside the messages, as the arguments of transformers' apply_chat_template.
struct ChatOptions {
  std::optional<std::string> tools = std::nullopt;    // JSON: an array of the schemas of functions
  std::map<std::string, std::string> variables = {};  // JSON by name: what else the template may ask for: enable_thinking, documents
  /// Whether the prompt ends with the header of the model's answer. Nothing: with a Model it does; else as the messages say, and not where
  /// they do not.
  std::optional<bool> add_generation_prompt = std::nullopt;
  std::optional<std::tm> now = std::nullopt;        // what the template takes for the time; nothing: the local time
  std::string messages_file = {}, tools_file = {};  // where their JSON is from, for errors; empty: from no file
};

class ChatTemplate;

/// The chat template of a model, without the model. Copies share it; any number of threads may use it.
class PromptTemplate {
 public:
  /// A folder in the layout of Hugging Face, a GGUF file, or a file with the template alone, in Jinja's language. Of several templates
  /// `variant` names one; by default it is `tool_use` for a chat with tools where there is one, else `default`. Throws Error naming the
  /// file for what is missing or no template.
  static PromptTemplate open(const std::filesystem::path& path, std::string_view variant = {});

  /// The prompt for messages: JSON, an array of objects with `role` and, as a rule, `content` (tool_calls, reasoning_content or whatever
  /// the template knows), or an object that has them as `messages` and perhaps `tools`, `add_generation_prompt` and variables; options win.
  /// Throws Error naming the file or argument that is not such JSON, and the field, and the template's line for what it refuses.
  std::string prompt(std::string_view messages, const ChatOptions& options = {}) const;

 private:
  explicit PromptTemplate(std::shared_ptr<const ChatTemplate> source) : template_(std::move(source)) {}

  std::shared_ptr<const ChatTemplate> template_;
};

}  // namespace rlx
