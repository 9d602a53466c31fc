#include "terminal/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "terminal/line_history.h"
#include "terminal/terminal.h"
#include "terminal/typed_keys.h"
#include "text/unicode/unicode.h"

namespace rlx::command {
namespace {

constexpr int most_remembered = 1000;
constexpr char escape_mark = '\1';  // around what moves no cursor

/// libedit reads characters in the encoding of the locale: that of the user, and UTF-8 where that is none.
void choose_encoding() {
  std::setlocale(LC_CTYPE, "");
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
}

/// What follows the beginning of a file's name in all names that have it; a / behind the only one, where it is a folder.
std::string rest_of_file_name(std::string_view typed) {
  const std::size_t slash = typed.rfind('/') + 1;  // 0 where there is none
  const std::string folder(typed.substr(0, slash)), start(typed.substr(slash));
  std::error_code error;
  std::optional<std::string> rest;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with(start) || (start.empty() && name.starts_with('.'))) continue;
    if (std::error_code failed; entry->is_directory(failed)) name += '/';
    name.erase(0, start.size());
    if (rest) name.resize(unicode::common_prefix(name, *rest));
    rest = std::move(name);
  }
  return rest.value_or("");
}

}  // namespace

struct LineEditor::State {
  State(std::vector<std::string> completions, std::vector<std::string> before_files, std::filesystem::path kept)
      : words(std::move(completions)),
        file_words(std::move(before_files)),
        file(std::move(kept)),
        history(history_init()),
        editor(el_init("rlx", stdin, stdout, stderr)) {
    if (editor == nullptr || history == nullptr) return;
    HistEvent event;
    ::history(history, &event, H_SETSIZE, most_remembered);
    ::history(history, &event, H_SETUNIQUE, 1);
    for (const std::string& line : read_history(file, most_remembered)) ::history(history, &event, H_ENTER, line.c_str());
    el_set(editor, EL_CLIENTDATA, this);
    el_set(editor, EL_PROMPT_ESC, prompt_of, escape_mark);
    el_set(editor, EL_HIST, ::history, history);
    el_set(editor, EL_EDITOR, "emacs");
    el_source(editor, nullptr);  // first: a change to vi forgets all keys
    // The narrow form of this call copies the names and never frees them.
    el_wset(editor, EL_ADDFN, L"rlx-complete", L"complete a command", complete);
    el_wset(editor, EL_ADDFN, L"rlx-empty-line", L"begin the line anew", begin_anew);
    el_wset(editor, EL_ADDFN, L"rlx-suspend", L"leave for the shell", suspend);
    el_wset(editor, EL_ADDFN, L"rlx-paste", L"insert what is pasted", paste);
    el_set(editor, EL_BIND, "^I", "rlx-complete", nullptr);
    el_set(editor, EL_BIND, "^C", "rlx-empty-line", nullptr);
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    // While a line is typed Ctrl-C is a key, and Ctrl-Z, too; and the ends of pasted lines come as they are.
    el_set(editor, EL_SETTY, "-d", "-isig", "-icrnl", "-inlcr", nullptr);
    el_set(editor, EL_BIND, "^Z", "rlx-suspend", nullptr);
    el_wset(editor, EL_GETCFN, read_key);
    constexpr wchar_t pasted[] = {TypedKeys::paste, 0};
    el_wset(editor, EL_BIND, pasted, L"rlx-paste", nullptr);
    el_wset(editor, EL_BIND, L"-a", pasted, L"rlx-paste", nullptr);  // the commands of vi
  }
  ~State() {
    if (editor != nullptr) el_end(editor);
    if (history != nullptr) history_end(history);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static State& of(EditLine* editor) {
    void* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return *static_cast<State*>(state);
  }
  static const char* prompt_of(EditLine* editor) { return of(editor).prompt.c_str(); }

  static unsigned char complete(EditLine* editor, int /*key*/) {
    const LineInfo* line = el_line(editor);
    const std::string_view typed(line->buffer, static_cast<std::size_t>(line->cursor - line->buffer));
    for (const std::string& word : of(editor).file_words)
      if (typed.starts_with(word)) return insert(editor, rest_of_file_name(typed.substr(word.size())));
    const std::string* only = nullptr;
    for (const std::string& word : of(editor).words) {
      if (typed.empty() || !word.starts_with(typed)) continue;
      if (only != nullptr) return CC_REFRESH_BEEP;
      only = &word;
    }
    return insert(editor, only ? only->substr(typed.size()) : "");
  }

  static unsigned char insert(EditLine* editor, const std::string& text) {
    return text.empty() || el_insertstr(editor, text.c_str()) != 0 ? CC_REFRESH_BEEP : CC_REFRESH;
  }

  static unsigned char begin_anew(EditLine* editor, int /*key*/) {
    const LineInfoW* line = el_wline(editor);  // the positions are those of characters
    el_cursor(editor, static_cast<int>(line->lastchar - line->cursor));
    el_deletestr(editor, static_cast<int>(line->lastchar - line->buffer));
    return CC_REFRESH;
  }

  static unsigned char suspend(EditLine* editor, int /*key*/) {
    el_set(editor, EL_PREP_TERM, 0);
    end_editing();
    kill(0, SIGTSTP);
    begin_editing();
    el_set(editor, EL_PREP_TERM, 1);
    return CC_REDISPLAY;
  }

  static int read_key(EditLine* editor, wchar_t* key) {
    const auto next = of(editor).keys.next();
    if (next) *key = *next;
    return next ? 1 : 0;
  }

  static unsigned char paste(EditLine* editor, int /*key*/) {
    const std::wstring& text = of(editor).keys.pasted();
    return !text.empty() && el_winsertstr(editor, text.c_str()) != 0 ? CC_REFRESH_BEEP : CC_REFRESH;
  }

  void remember(const std::string& line) {
    HistEvent event;
    if (line.empty() || ::history(history, &event, H_ENTER, line.c_str()) < 0 || file.empty()) return;
    std::vector<std::string> entries;
    for (int found = ::history(history, &event, H_LAST); found == 0; found = ::history(history, &event, H_PREV))
      entries.emplace_back(event.str);
    if (!write_history(file, entries)) file.clear();
  }

  std::vector<std::string> words, file_words;
  std::filesystem::path file;
  std::string prompt;
  TypedKeys keys;
  History* history;
  EditLine* editor;
};

LineEditor::LineEditor(std::vector<std::string> words, std::vector<std::string> file_words, std::filesystem::path history) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return;
  wait_for_foreground();
  choose_encoding();
  state_ = std::make_unique<State>(std::move(words), std::move(file_words), std::move(history));
  if (state_->editor == nullptr || state_->history == nullptr) state_.reset();
}

LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read(const std::string& prompt, const std::string& colour) {
  std::string line;
  if (!state_) {
    if (!std::getline(std::cin, line)) return std::nullopt;
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  state_->prompt = colour.empty() ? prompt + " " : fmt::format("\1\x1b[{}m\1{}\1\x1b[0m\1 ", colour, prompt);
  int length = 0;
  begin_editing();
  el_set(state_->editor, EL_PREP_TERM, 1);  // before the prompt is seen: from then on Ctrl-C is a key
  const char* typed = el_gets(state_->editor, &length);
  end_editing();
  if (typed == nullptr || length <= 0) return std::nullopt;
  line = typed;
  if (line.ends_with('\n')) line.pop_back();
  state_->remember(line);
  return line;
}

}  // namespace rlx::command
