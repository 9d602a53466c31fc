#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/files/file_writer.h"
#include "base/names.h"
#include "command.h"
#include "files/writable.h"
#include "formats/json/json.h"
#include "formats/json/json_field.h"
#include "options/compile_choices.h"
#include "options/generation_choices.h"
#include "options/warnings.h"
#include "rlx/model.h"
#include "terminal/interrupt.h"
#include "terminal/line_editor.h"
#include "terminal/line_history.h"
#include "terminal/say.h"
#include "terminal/stopwatch.h"
#include "terminal/terminal.h"
#include "terminal/wrapped_text.h"
#include "text/tokenizer/token_decoder.h"

namespace rlx::command {
namespace {

struct ChatOptions {
  ChatOptions() {
    SamplingOptions& sampling = generation.sampling.options;
    sampling.temperature = 0.7, sampling.top_k = 40, sampling.top_p = 0.95, sampling.min_p = 0.05;
    generation.recommended = true;
  }

  GenerationChoices generation;
  std::string system, cache;
  bool no_history = false;
  CompileChoices compile;
};

constexpr const char* chat_help =
    "  /help           this list\n"
    "  /reset          forget the conversation\n"
    "  /retry          answer the last message again\n"
    "  /system TEXT    what the model is told before the conversation; forgets it. Without TEXT shows it\n"
    "  /save FILE      write the conversation as text; as JSON if the name ends with .json\n"
    "  /load FILE      go on with a conversation that is in a .json file\n"
    "  /exit           leave; Ctrl-D does, too\n"
    "A line that ends with \\ goes on in the next one; so does all between two \"\"\". What is pasted is one\n"
    "message with all its lines, which Enter sends. Ctrl-C stops an answer.\n";

/// Of the messages in a file that keeps a conversation.
constexpr const char* messages_note = "messages";

constexpr std::string_view json_ending = ".json";

std::string written(std::span<const ChatMessage> messages) {
  json::Value list = json::Value::array();
  for (const ChatMessage& message : messages) list.push_back({{"role", message.role}, {"content", replace_invalid_utf8(message.content)}});
  return list.dump();
}

std::vector<ChatMessage> read_messages(const json::Value& list, const std::string& file) {
  std::vector<ChatMessage> messages;
  for (const JsonField& message : JsonField(list, file, messages_note).items())
    messages.push_back({message.at("role").as_string(), message.at("content").as_string()});
  return messages;
}

constexpr std::string_view quotes = "\"\"\"";  // around a message of several lines

/// Where the quotes stand that a line ends with. What is pasted may end its line behind them.
std::optional<std::size_t> closing_quotes(std::string_view line) {
  line = line.substr(0, line.find_last_not_of('\n') + 1);
  if (!line.ends_with(quotes)) return std::nullopt;
  return line.size() - quotes.size();
}

/// Whether the terminal, and who sits there, want colours (https://no-color.org).
bool wants_colours() {
  const char* refused = std::getenv("NO_COLOR");
  return understands_escapes() && (refused == nullptr || *refused == '\0');
}

/// A conversation on a terminal.
class Conversation {
 public:
  Conversation(Model model, GenerateOptions options, const ChatOptions& choices)
      : model_(std::move(model)),
        editor_({"/help", "/reset", "/retry", "/system ", "/save ", "/load ", "/exit"}, {"/save ", "/load "},
                choices.no_history ? "" : history_file()),
        options_(std::move(options)),
        colours_(wants_colours()),
        cache_(choices.cache) {
    begin(choices.system);
    check_model(choices.generation.model);
    if (!cache_.empty()) restore();
  }

  /// Until the user leaves.
  void hold() {
    if (editor_.is_terminal()) fmt::print("{}", coloured("2", "/help lists what can be done here.\n"));
    while (const auto typed = read_message()) {
      if (typed->text.find_first_not_of(" \t\n") == std::string::npos) continue;
      if (!typed->quoted && typed->text.front() == '/') {
        if (!obey(typed->text.substr(0, typed->text.find_last_not_of('\n') + 1))) return;  // what is pasted may end a line
      } else {
        const std::vector<ChatMessage> before = messages_;
        if (try_to([&] { check_utf8(typed->text, "the message"); })) {
          messages_.push_back({"user", typed->text});
          answer(before);
        }
      }
      keep();
    }
    keep();
    fmt::print("\n");
  }

  /// Whether something failed that nobody saw on a terminal, or the conversation could not be kept.
  bool failed() const { return (failed_ && !editor_.is_terminal()) || !not_kept_.empty(); }

 private:
  /// Writes the conversation where it is to be kept, if it is another one than there. What prevents that is said once.
  void keep() {
    if (cache_.empty() || model_.ids().empty()) return;
    std::string now = written(messages_);
    if (now == kept_) return;
    try {
      model_.save_cache(cache_, {{messages_note, now}});
      kept_ = std::move(now);
      not_kept_.clear();
    } catch (const Error& error) {
      if (not_kept_ != error.what()) tell(error);
      not_kept_ = error.what();
    }
  }

  /// Into the conversation, or where a program that is no terminal looks for it.
  void tell(const Error& error) const {
    if (editor_.is_terminal()) fmt::print("{}\n", coloured("31", error.what()));
    else std::fflush(stdout), say("rlx: {}\n", error.what());
  }

  std::string coloured(std::string_view code, std::string_view text) const {
    return colours_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }

  void begin(const std::string& system) {
    messages_.clear();
    if (!system.empty()) messages_.push_back({"system", system});
  }

  /// Throws Error for a model that could answer no message.
  void check_model(const std::string& file) const {
    if (!model_.continues_texts()) fail("{}: holds no conversation, as it answers single prompts (rlx run)", file);
    std::vector<ChatMessage> messages = messages_;
    messages.push_back({"user", "?"});
    model_.chat_prompt(messages);
    model_.tokenize("", false);
  }

  /// Goes on with what the file keeps, where there is one.
  void restore() {
    check_writable(cache_);
    std::error_code error;
    if (!std::filesystem::exists(cache_, error)) return;
    const auto notes = model_.load_cache(cache_);
    const auto messages = notes.find(messages_note);
    if (messages == notes.end()) fail("{}: holds no conversation", cache_);
    const std::string system = system_text();
    messages_ = read_messages(json::parse(messages->second, cache_), cache_);
    kept_ = written(messages_);
    if (messages_.empty()) begin(system);  // it was forgotten, and begins anew
    fmt::print("{}\n", coloured("2", fmt::format("[{}: {} messages, {} of {} in the context{}]", cache_, messages_.size(),
                                                 model_.ids().size(), model_.context(),
                                                 system.empty() || system == system_text() ? "" : ", begun without this --system")));
  }

  std::optional<std::string> read_line(const char* prompt) { return editor_.read(prompt, colours_ ? "1;36" : ""); }

  /// What was typed, perhaps several lines; between quotes it is no command.
  struct Typed {
    std::string text;
    bool quoted;
  };

  /// Nothing at the end of the input.
  std::optional<Typed> read_message() {
    auto line = read_line(">");
    if (!line) return std::nullopt;
    std::string text;
    if (line->starts_with(quotes)) {
      for (line->erase(0, quotes.size()); line && !closing_quotes(*line); line = read_line(".")) text += *line + "\n";
      if (line) line->resize(*closing_quotes(*line));
      text += line.value_or("");
      if (text.starts_with('\n')) text.erase(0, 1);  // of the line with the first quotes
      return Typed{text, true};
    }
    for (; line && line->ends_with('\\'); line = read_line(".")) text += line->substr(0, line->size() - 1) + "\n";
    return Typed{text + line.value_or(""), false};
  }

  /// False when the user leaves.
  bool obey(const std::string& text) {
    const std::size_t space = text.find(' '), behind = text.find_first_not_of(' ', space);
    const std::string command = text.substr(0, space), rest = behind == std::string::npos ? "" : text.substr(behind);
    if (command == "/exit" || command == "/quit") return false;
    if (command == "/help") fmt::print("{}", chat_help);
    else if (command == "/reset") begin(system_text());
    else if (command == "/system") change_system(rest);
    else if (command == "/retry") retry();
    else if (command == "/save") save(rest);
    else if (command == "/load") load(rest);
    else fmt::print("{} is no command; /help lists them, and a message may begin so between two \"\"\"\n", command);
    return true;
  }

  std::string system_text() const { return !messages_.empty() && messages_[0].role == "system" ? messages_[0].content : ""; }

  void change_system(const std::string& text) {
    const auto change = [&] {
      check_utf8(text, "/system");
      begin(text);
    };
    if (!text.empty()) try_to(change);
    else fmt::print("{}\n", system_text().empty() ? coloured("2", "[the model is told nothing beforehand]") : system_text());
  }

  void retry() {
    const std::vector<ChatMessage> before = messages_;
    if (!messages_.empty() && messages_.back().role == "assistant") messages_.pop_back();
    if (messages_.empty() || messages_.back().role != "user") fmt::print("there is nothing to answer yet\n");
    else answer(before);
  }

  void save(const std::string& file) {
    if (file.empty()) return fmt::print("/save needs the name of a file\n");
    std::string text;
    for (const ChatMessage& message : messages_) text += fmt::format("{}: {}\n\n", message.role, message.content);
    try_to([&] {
      write_file(file, file.ends_with(json_ending) ? written(messages_) + "\n" : text);
      print_count(file);
    });
  }

  void print_count(const std::string& file) const {
    fmt::print("{}\n", coloured("2", fmt::format("[{}: {} messages]", file, messages_.size())));
  }

  void load(const std::string& file) {
    if (!file.ends_with(json_ending)) return fmt::print("/load needs the name of a .json file, as /save writes it\n");
    const auto read = [&] {
      const json::Value list = json::read_file(file);
      messages_ = read_messages(list, file);
      print_count(file);
    };
    try_to(read);
  }

  /// The conversation goes on after an error, as it was before the message that caused it.
  void answer(const std::vector<ChatMessage>& before) {
    if (!try_to([this] { speak(); })) messages_ = before;
  }

  /// False after an Error of the user's, which is printed.
  template <class Action>
  bool try_to(Action action) {
    try {
      action();
      return true;
    } catch (const Error& error) {
      failed_ = true;
      tell(error);
      return false;
    }
  }

  /// The conversation; where it does not fit and older messages may be forgotten, without the first of them.
  std::vector<std::int32_t> fitting_prompt() {
    while (true) {
      std::vector<std::int32_t> prompt = model_.tokenize(model_.chat_prompt(messages_), false);
      const std::ptrdiff_t first = messages_[0].role == "system" ? 1 : 0;
      if (static_cast<std::int64_t>(prompt.size()) < model_.context()) return prompt;
      if (!options_.context_shift || static_cast<std::ptrdiff_t>(messages_.size()) < first + 3)
        fail(
            "the conversation of {} tokens leaves no room for an answer (allowed: below {}; --context N makes room, --context-shift "
            "forgets, as /reset does)",
            prompt.size(), model_.context());
      messages_.erase(messages_.begin() + first, messages_.begin() + first + 2);  // a question and its answer
    }
  }

  void speak() {
    const AnswerInterrupt interrupt;
    const std::vector<std::int32_t> prompt = fitting_prompt();
    const Stopwatch time;
    GenerateOptions options = options_;
    options.cancelled = [&] { return interrupt.pressed(); };
    Generation generation = model_.generate(prompt, options);
    std::string text;
    WrappedText wrapped(wrapping_columns());
    for (auto piece = generation.next(); piece; piece = generation.next()) {
      text += *piece;
      fmt::print("{}", wrapped.next(*piece));
      flush_output();
    }
    const bool stopped = generation.finish_reason() == FinishReason::cancelled;
    if (stopped && generation.ids().empty()) fail("stopped before the answer began");
    const std::string_view end = stopped ? ", stopped" : generation.finish_reason() == FinishReason::context_full ? ", which is full" : "";
    const std::size_t tokens = generation.ids().size();
    const Guesses guesses = generation.guesses();
    fmt::print(
        "\n{}\n",
        coloured("2", fmt::format("[{} tokens, {:.1f} tok/s, {} of {} in the context{}{}]", tokens,
                                  static_cast<double>(tokens) / time.seconds(), model_.ids().size(), model_.context(),
                                  guesses.tried > 0 ? fmt::format(", {} of {} guesses right", guesses.right, guesses.tried) : "", end)));
    messages_.push_back({"assistant", text});
  }

  Model model_;
  LineEditor editor_;
  GenerateOptions options_;
  bool colours_, failed_ = false;
  std::string cache_;     // the file that keeps the conversation; empty: none
  std::string kept_;      // the messages that are there
  std::string not_kept_;  // why those of now are not
  std::vector<ChatMessage> messages_;
};

void chat(const ChatOptions& options) {
  check_utf8(options.system, "--system");
  const Session session = open_session(options.compile, options.generation.model);
  warn_about_precision(options.compile, options.generation.model);
  auto [model, generate] = open_model(options.generation, session, open_layers_on(options.compile, session));
  Conversation conversation(std::move(model), std::move(generate), options);
  conversation.hold();
  warn_about_cache(session);
  if (conversation.failed()) throw CLI::RuntimeError(1);
}

}  // namespace

void add_chat(CLI::App& app) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* command = app.add_subcommand("chat", "Talk with a language model that has a chat template");
  command->add_option("--system", options->system, "What the model is told before the conversation")->type_name("TEXT");
  command
      ->add_option("--cache", options->cache, "Go on with the conversation in this file, if it exists, and keep it there after each answer")
      ->type_name("FILE");
  command->add_flag(
      "--no-history", options->no_history,
      "Keep no line that is typed; else arrow up finds them another day, in rlx/history in $XDG_STATE_HOME or ~/.local/state");
  add_generation(*command, options->generation);
  add_model_choices(*command, options->compile);
  command->footer(
      fmt::format("Options of sampling that are not given are those that the model's file recommends (general.sampling.*, or the folder's\n"
                  "generation_config.json), else as above.\n\nIn the conversation:\n{}",
                  chat_help));
  command->callback([options] { chat(*options); });
}

}  // namespace rlx::command
