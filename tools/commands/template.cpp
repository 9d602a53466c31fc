#include <cstdio>
#include <ctime>
#include <iomanip>
#include <memory>
#include <optional>
#include <sstream>

#include "base/names.h"
#include "command.h"
#include "files/text_lines.h"
#include "rlx/chat_template.h"
#include "rlx/error.h"

namespace rlx::command {
namespace {

struct TemplateOptions {
  std::string model, messages, tools, variant, now;
  std::vector<std::string> variables;
  std::optional<bool> add_generation_prompt;
};

/// NAME=JSON.
void set_variable(const std::string& argument, ChatOptions& chat) {
  const std::size_t equals = argument.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw CLI::ValidationError("--set", fmt::format("{} is not NAME=JSON", quote_name(argument)));
  const std::string name = argument.substr(0, equals);
  if (name == "messages" || name == "tools" || name == "add_generation_prompt")
    throw CLI::ValidationError("--set", fmt::format("{} has an option of its own", quote_name(name)));
  chat.variables[name] = argument.substr(equals + 1);
}

std::tm time_of(const std::string& text) {
  std::tm time{};
  std::istringstream in(text);
  in >> std::get_time(&time, "%Y-%m-%dT%H:%M:%S");
  std::tm whole = time;
  timegm(&whole);  // makes a day of March of the 30th of February
  if (in.fail() || in.peek() != std::char_traits<char>::eof() || whole.tm_mday != time.tm_mday)
    throw CLI::ValidationError("--now", fmt::format("{} is not a time (allowed: YYYY-MM-DDTHH:MM:SS)", quote_name(text)));
  time.tm_wday = whole.tm_wday, time.tm_yday = whole.tm_yday;
  return time;
}

void print_prompt(const TemplateOptions& options) {
  ChatOptions chat{.add_generation_prompt = options.add_generation_prompt};
  if (!options.now.empty()) chat.now = time_of(options.now);
  chat.messages_file = input_name(options.messages);
  if (!options.tools.empty()) chat.tools = read_whole_text(options.tools), chat.tools_file = input_name(options.tools);
  for (const std::string& variable : options.variables) set_variable(variable, chat);
  const std::string prompt = PromptTemplate::open(options.model, options.variant).prompt(read_whole_text(options.messages), chat);
  std::fwrite(prompt.data(), 1, prompt.size(), stdout);
}

}  // namespace

void add_template(CLI::App& app) {
  const auto options = std::make_shared<TemplateOptions>();
  CLI::App* command = app.add_subcommand("template", "Print the prompt that a model's chat template makes of messages");
  command->add_option("--model", options->model, "A model's folder or GGUF file, or a file with a template in Jinja's language")
      ->required()
      ->type_name("PATH");
  command
      ->add_option("--messages", options->messages,
                   "JSON: an array of messages, or an object with messages, tools and other variables; "
                   "- is standard input")
      ->required()
      ->type_name("FILE");
  command->add_option("--tools", options->tools, "JSON: an array of the tools that the model may call")->type_name("FILE");
  // Not a flag of the optional itself, which CLI11 would begin with `false`.
  CLI::Option* with_header = command->add_flag_callback(
      "--add-generation-prompt", [options] { options->add_generation_prompt = true; },
      "End with the header of the assistant's next message (by default as the messages' file says, else not)");
  with_header->disable_flag_override();  // as no value of it is read
  command
      ->add_flag_callback(
          "--no-add-generation-prompt", [options] { options->add_generation_prompt = false; }, "End behind the last message")
      ->excludes(with_header);
  command->add_option("--set", options->variables, "Give the template a variable, such as enable_thinking=false")->type_name("NAME=JSON");
  command->add_option("--variant", options->variant, "Which of several templates of the model")->type_name("NAME");
  command->add_option("--now", options->now, "What the template takes for the time, such as 2026-01-02T03:04:05")->type_name("TIME");
  command->footer(
      "Example:\n  echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' | rlx template --model DIR --messages - --add-generation-prompt");
  command->callback([options] { print_prompt(*options); });
}

}  // namespace rlx::command
