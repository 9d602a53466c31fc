#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rlx::command {

/// Lines that a user types: with the keys of Emacs or vi (the user's ~/.editrc), a history (arrow up, Ctrl-R) and Tab, where the input is a
/// terminal; else plain lines without prompts. Ctrl-C empties the line. What is pasted is part of the line, line breaks and all.
class LineEditor {
 public:
  /// Tab completes a line to one of `words`, where that is the only one, and behind one of `file_words` the name of a file. The history
  /// goes on from the file `history` and is kept there after each line; empty: nowhere.
  LineEditor(std::vector<std::string> words, std::vector<std::string> file_words, std::filesystem::path history);
  ~LineEditor();

  /// Whether somebody types: prompts and hints are of use.
  bool is_terminal() const { return state_ != nullptr; }

  /// The next line without its end; several lines where such are pasted; nothing at the end of the input (Ctrl-D). `colour` is the prompt's
  /// SGR code ("1;36"), empty for none.
  std::optional<std::string> read(const std::string& prompt, const std::string& colour);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rlx::command
