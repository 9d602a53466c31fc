#include "files/text_lines.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include <fmt/core.h>

#include "base/files/near_files.h"
#include "base/names.h"
#include "files/bounded_input.h"
#include "rlx/error.h"
#include "terminal/say.h"

namespace rlx::command {
namespace {

/// The lines of the file, or of standard input for "-".
std::string read_text(const std::string& file) {
  if (file == "-") {
    if (isatty(STDIN_FILENO) == 1) say("Type text; end with Ctrl-D.\n");
    return read_bounded(std::cin, input_name(file));
  }
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) fail("{}: is a folder (expected a file of text lines)", file);
  std::ifstream in(file);
  if (!in) {
    const int reason = errno;
    fail("{}: {}{}", file, std::strerror(reason), near_files(file));
  }
  return read_bounded(in, file);
}

std::vector<std::string> raw_lines(const std::string& file) {
  std::istringstream text(read_text(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

/// A line that is not UTF-8 has no tokens that mean it. Found before the time is spent.
void check_lines(const std::vector<std::string>& texts, const std::string& file) {
  for (std::size_t i = 0; i < texts.size(); ++i) check_utf8(texts[i], fmt::format("{}: line {}", file, i + 1));
}

}  // namespace

std::string input_name(const std::string& file) { return file == "-" ? "standard input" : file; }

std::vector<std::string> read_text_lines(const std::string& file) {
  std::vector<std::string> texts = raw_lines(file);
  check_lines(texts, input_name(file));
  return texts;
}

std::string read_whole_text(const std::string& file) {
  std::string text = read_text(file);
  check_utf8(text, input_name(file));
  return text;
}

}  // namespace rlx::command
