#include "models/config/model_chat_template.h"

#include <array>
#include <cstdint>
#include <ctime>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/files/mapped_file.h"
#include "base/names.h"
#include "formats/gguf/gguf.h"
#include "formats/json/json_field.h"
#include "models/config/model_folder.h"
#include "rlx/error.h"
#include "text/tokenizer/files/tokenizer_files.h"

namespace rlx {
namespace {

namespace fs = std::filesystem;

/// The text, which is refused where it is not UTF-8.
std::string utf8_text(std::string_view text, std::string_view what) { return check_utf8(text, what), std::string(text); }

std::string_view text_of_file(const MappedFile& file) { return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}; }

std::string read_template_file(const fs::path& path) {
  constexpr std::size_t largest = 1 << 24;
  const MappedFile file = MappedFile::open(path);
  if (file.bytes().size() > largest) fail("{}: {} bytes (a template has at most {})", path.string(), file.bytes().size(), largest);
  return utf8_text(text_of_file(file), path.string());
}

/// False where it cannot be looked at, too.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// A token as a string, or as an object that has it as `content`; nothing for null.
std::optional<std::string> token_text(const JsonField& field) {
  if (field.value().is_null()) return std::nullopt;
  return field.value().is_object() ? field.at("content").as_string() : field.as_string();
}

/// bos_token, eos_token and the like, of tokenizer_config.json and special_tokens_map.json.
json::Value read_special_tokens(const fs::path& folder) {
  json::Value tokens = json::Value::object();
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {
    if (!is_there(folder / name)) continue;
    const ConfigFile config = ConfigFile::open(folder / name);
    for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
      if (const auto field = config.root().find(key)) tokens[key] = *token_text(*field);
    const auto extra = config.root().find("extra_special_tokens");
    if (!extra || !extra->value().is_object()) continue;
    for (const auto& [key, token] : extra->members())
      if (const auto text = token_text(token)) tokens[key] = *text;
  }
  return tokens;
}

/// The tokens that the metadata names by their ids. An id of no token names none: some writers give such to tokens that a model lacks.
json::Value read_special_tokens(const GgufFile& file) {
  constexpr std::array<std::pair<const char*, const char*>, 7> keys = {{{"bos_token", "tokenizer.ggml.bos_token_id"},
                                                                        {"eos_token", "tokenizer.ggml.eos_token_id"},
                                                                        {"unk_token", "tokenizer.ggml.unknown_token_id"},
                                                                        {"sep_token", "tokenizer.ggml.seperator_token_id"},
                                                                        {"pad_token", "tokenizer.ggml.padding_token_id"},
                                                                        {"cls_token", "tokenizer.ggml.cls_token_id"},
                                                                        {"mask_token", "tokenizer.ggml.mask_token_id"}}};
  json::Value tokens = json::Value::object();
  const GgufValue* vocabulary = file.find_value("tokenizer.ggml.tokens");
  if (!vocabulary) return tokens;
  const std::vector<std::string_view> texts = vocabulary->strings();
  for (const auto& [name, key] : keys) {
    const GgufValue* value = file.find_value(key);
    if (value == nullptr) continue;
    const std::int64_t id = value->integer(std::numeric_limits<std::int64_t>::min());
    if (id >= 0 && id < static_cast<std::int64_t>(texts.size())) tokens[name] = utf8_text(texts[static_cast<std::size_t>(id)], key);
  }
  return tokens;
}

using Variants = std::map<std::string, std::string>;  // name -> template; "default" for the only one

void add_variants(const JsonField& field, Variants& variants) {
  if (field.value().is_string()) {
    variants["default"] = field.as_string();
  } else if (field.value().is_object()) {
    for (const auto& [name, text] : field.members()) variants[name] = text.as_string();
  } else {
    for (const JsonField& item : field.items()) variants[item.at("name").as_string()] = item.at("template").as_string();
  }
}

Variants read_variants(const GgufFile& file) {
  Variants variants = chat_templates_in(file);
  for (const auto& [name, text] : variants) utf8_text(text, fmt::format("{}: chat template {}", file.name(), quote_name(name)));
  return variants;
}

std::string chosen_variant(const Variants& variants, std::string_view variant, bool with_tools, const std::string& where) {
  if (variants.empty())
    fail(
        "{}: no chat template (expected chat_template.jinja, 'chat_template' in tokenizer_config.json, or 'tokenizer.chat_template' in a "
        "GGUF file)",
        where);
  std::vector<std::string> names;
  for (const auto& [name, text] : variants) names.push_back(name);
  std::string wanted(variant);
  if (wanted.empty()) wanted = with_tools && variants.contains("tool_use") ? "tool_use" : "default";
  if (!variants.contains(wanted)) fail("{}: there is no chat template {} (allowed: {})", where, quote_name(wanted), some_names(names));
  return wanted;
}

/// One message without its null members, with its reasoning under the names that templates ask for.
json::Value prepared(const json::Value& message, const std::string& place) {
  if (!message.is_object()) fail("{}: a value of type {} (allowed: an object)", place, message.type_name());
  json::Value kept = json::Value::object();
  for (const auto& [key, value] : message.items())
    if (!value.is_null()) kept[key] = value;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    if (!kept.contains(name)) continue;
    const json::Value reasoning = kept[name];
    json::Value aliased = json::Value::object();
    aliased["thinking"] = reasoning;
    for (const auto& [key, value] : kept.items()) aliased[key] = value;
    aliased["reasoning_content"] = reasoning;
    return aliased;
  }
  return kept;
}

ChatTemplate template_of(const Variants& variants, std::string_view variant, const std::string& where, json::Value special_tokens) {
  const auto parsed = [&](bool with_tools) {
    const std::string chosen = chosen_variant(variants, variant, with_tools, where);
    return jinja::Template::parse(variants.at(chosen), fmt::format("{}: chat template {}", where, quote_name(chosen)));
  };
  return {parsed(false), parsed(true), std::move(special_tokens)};
}

/// Numbers as they are written, and those that Python writes.
constexpr json::Options exact_numbers = {.wide_integers = false, .allow_non_finite = true};

/// A field, with the file that it is in.
std::string place_in(const std::string& file, std::string_view field) {
  return file.empty() ? std::string(field) : fmt::format("{}: {}", file, field);
}

void set_all(const json::Value& from, std::string_view what, json::Value& into) {
  if (!from.is_object()) fail("{}: a value of type {} (allowed: an object)", what, from.type_name());
  for (const auto& [key, value] : from.items()) into[key] = value;
}

}  // namespace

std::map<std::string, std::string> chat_templates_in(const fs::path& folder) {
  Variants variants;
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    if (!is_there(folder / name)) continue;
    const ConfigFile config = ConfigFile::open(folder / name);
    if (const auto field = config.root().find("chat_template")) add_variants(*field, variants);
  }
  if (is_there(folder / "chat_template.jinja")) variants["default"] = read_template_file(folder / "chat_template.jinja");
  const fs::path more = folder / "additional_chat_templates";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(more, error))
    if (entry.path().extension() == ".jinja") variants[entry.path().stem().string()] = read_template_file(entry.path());
  return variants;
}

Chat Chat::from_json(const json::Value& value, const std::string& file) {
  Chat chat;
  chat.file = chat.tools_file = file;
  if (value.is_array()) {
    chat.messages = value;
    return chat;
  }
  if (!value.is_object() || !value.contains("messages"))
    fail("{} (allowed: an array of messages, or an object that has them as 'messages')",
         place_in(file, value.is_object() ? "an object without 'messages'" : fmt::format("a value of type {}", value.type_name())));
  for (const char* group : {"special_tokens", "kwargs"})
    if (value.contains(group)) set_all(value[group], place_in(file, group), chat.variables);
  for (const auto& [key, member] : value.items()) {
    if (key == "messages") chat.messages = member;
    else if (key == "tools") chat.tools = member;
    else if (key != "special_tokens" && key != "kwargs") chat.variables[key] = member;
  }
  if (const auto prompt = chat.variables.find("add_generation_prompt"); prompt != chat.variables.end()) {
    if (!prompt->is_boolean())
      fail("{}: a value of type {} (allowed: true, false)", place_in(file, "add_generation_prompt"), prompt->type_name());
    chat.add_generation_prompt = prompt->get<bool>();
    chat.variables.erase(prompt);
  }
  return chat;
}

Chat Chat::from_text(std::string_view text, const std::string& file) {
  return from_json(json::parse(text, file.empty() ? "messages" : file, exact_numbers), file);
}

ChatTemplate ChatTemplate::of(const GgufFile& file, std::string_view variant) {
  return template_of(read_variants(file), variant, file.name(), read_special_tokens(file));
}

ChatTemplate ChatTemplate::open(const fs::path& path, std::string_view variant) {
  std::error_code error;
  if (fs::is_directory(path, error)) return template_of(chat_templates_in(path), variant, path.string(), read_special_tokens(path));
  if (looks_like_gguf(MappedFile::open(path).bytes())) return of(GgufFile::open(path), variant);
  if (!variant.empty()) fail("{}: a file with one template has no variant {}", path.string(), quote_name(variant));
  return {jinja::Template::parse(read_template_file(path), path.string()), json::Value::object()};
}

std::string ChatTemplate::prompt(Chat chat, const ChatOptions& options) const {
  if (options.tools) {
    chat.tools_file = options.tools_file;
    chat.tools = json::parse(*options.tools, chat.tools_file.empty() ? "tools" : chat.tools_file, exact_numbers);
  }
  for (const auto& [name, value] : options.variables)
    chat.variables[name] = json::parse(value, fmt::format("variable {}", quote_name(name)), exact_numbers);
  if (options.add_generation_prompt) chat.add_generation_prompt = *options.add_generation_prompt;
  jinja::RenderOptions render_options;
  const std::time_t now = std::time(nullptr);
  if (options.now) render_options.now = *options.now;
  else localtime_r(&now, &render_options.now);
  return render(chat, render_options);
}

std::string ChatTemplate::render(const Chat& chat, const jinja::RenderOptions& options) const {
  const std::string messages = place_in(chat.file, "messages");
  if (!chat.messages.is_array()) fail("{}: a value of type {} (allowed: an array of objects)", messages, chat.messages.type_name());
  if (chat.messages.empty()) fail("{}: the conversation is empty (at least one message is needed)", messages);
  if (!chat.tools.is_null() && !chat.tools.is_array())
    fail("{}: a value of type {} (allowed: an array of JSON schemas)", place_in(chat.tools_file, "tools"), chat.tools.type_name());
  json::Value variables = special_tokens_;
  variables["documents"] = nullptr;
  set_all(chat.variables, "variables", variables);
  variables["messages"] = json::Value::array();
  for (std::size_t i = 0; i < chat.messages.size(); ++i)
    variables["messages"].push_back(prepared(chat.messages[i], fmt::format("{}[{}]", messages, i)));
  variables["tools"] = chat.tools;
  variables["add_generation_prompt"] = chat.add_generation_prompt;
  return (chat.tools.is_null() ? template_ : with_tools_).render(variables, options);
}

}  // namespace rlx
