#pragma once
#include <string>
#include <vector>

namespace rlx::command {

/// What messages call a file: "standard input" for "-".
std::string input_name(const std::string& file);

/// The lines of a file, or of standard input for "-", without their ends. Throws Error for a file that cannot be read, is too large, or
/// has a line that is not UTF-8.
std::vector<std::string> read_text_lines(const std::string& file);

/// All of a file, or of standard input for "-", under the same conditions.
std::string read_whole_text(const std::string& file);

}  // namespace rlx::command
