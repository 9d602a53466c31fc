// The calls of builders that are in progress, so that an error can name the caller's line.
#include <string_view>

#include "rlx/error.h"
#include "rlx/graph.h"

namespace rlx {
namespace {

thread_local Operand* innermost_call = nullptr;

/// The folder of this library's own sources, as the compiler was given it.
constexpr std::string_view library_folder() {
  std::string_view file = std::source_location::current().file_name();
  file.remove_suffix(std::string_view("ir/operand.cpp").size());
  return file;
}

/// Bodies and rules of the library call builders as well, and std::function calls them for others: the line of interest is further out.
bool is_callers(std::string_view file) {
  return !file.starts_with(library_folder()) && file.find("/include/c++/") == std::string_view::npos;
}

/// The file and its folder: "examples/hello.cpp".
std::string_view last_two_parts(std::string_view file) {
  const auto name = file.find_last_of("/\\");
  if (name == std::string_view::npos || name == 0) return file;
  const auto folder = file.find_last_of("/\\", name - 1);
  return folder == std::string_view::npos ? file : file.substr(folder + 1);
}

}  // namespace

Operand::Operand(Value value, std::source_location at) : Value(value), at_(at) {
  if (at_.line() == 0) return;
  outer_ = innermost_call;
  innermost_call = this;
}

void Operand::leave() {
  // Parameters end in the reverse order of their beginning; what is kept longer than its call may not.
  for (Operand** link = &innermost_call; *link; link = &(*link)->outer_) {
    if (*link != this) continue;
    *link = outer_;
    return;
  }
}

std::string build_place() {
  for (const Operand* call = innermost_call; call; call = call->outer_) {
    const std::string_view file = call->at_.file_name();
    if (is_callers(file)) return fmt::format(", built at {}:{}", last_two_parts(file), call->at_.line());
  }
  return {};
}

}  // namespace rlx
