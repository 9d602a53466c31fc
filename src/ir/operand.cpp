// The calls of builders that are in progress, so that an error can name the caller's line.
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/named_call.h"
#include "rlx/error.h"
#include "rlx/graph.h"
#include "rlx/place.h"

namespace rlx {
namespace {

thread_local Operand* innermost_call = nullptr;
thread_local const Place* innermost_place = nullptr;

/// Lies where this library does.
constexpr char library = 0;

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

/// Whether a function of that mangled name adds an op to a graph, or fits operands to each other for one that is to be added.
bool builds(std::string_view function) {
  constexpr std::string_view functions[] = {"_ZN3rlx5applyE", "_ZN3rlx16broadcast_shapesE", "_ZN3rlx5matchE", "_ZN3rlx12broadcast_toE"};
  return std::ranges::any_of(functions, [&](std::string_view name) { return function.starts_with(name); });
}

/// The function of this library that other code called last, where it was adding an op to a graph: "matmul". Else empty, and for operators,
/// whose ops have names. Only builders know by which name they were called, and there are hundreds: the stack says it, too, and nobody else
/// pays for an error.
std::string called_builder() {
  std::array<void*, 256> calls{};
  const int count = backtrace(calls.data(), static_cast<int>(calls.size()));
  Dl_info here{}, call{};
  dladdr(&library, &here);
  std::string_view outermost;
  bool adds_op = false, is_inside = false;
  for (int i = 0; i < count; ++i) {
    const bool known = dladdr(static_cast<char*>(calls[static_cast<std::size_t>(i)]) - 1, &call) != 0;  // within the call, not behind it
    const bool is_library = known && call.dli_fbase == here.dli_fbase;
    if (is_inside && !is_library) break;
    is_inside = is_inside || is_library;  // a sanitizer's backtrace may come first
    if (!is_inside) continue;
    outermost = call.dli_sname ? call.dli_sname : "";
    adds_op = adds_op || builds(outermost);
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(abi::__cxa_demangle(std::string(outermost).c_str(), nullptr, nullptr, &status),
                                                             &std::free);
  const std::string_view name = adds_op && readable ? readable.get() : "";  // rlx::matmul(rlx::Operand, rlx::Operand)
  constexpr std::string_view space = "rlx::";
  if (!name.starts_with(space) || name.starts_with("rlx::operator")) return "";
  const std::string_view plain = name.substr(space.size(), name.find('(') - space.size());
  return plain.find_first_of(":<") == std::string_view::npos ? std::string(plain) : "";
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

Place::Place(std::function<SourceLine()> find) : find_(std::move(find)), outer_(innermost_place) { innermost_place = this; }
Place::~Place() { innermost_place = outer_; }

namespace {

/// Where an op of another name failed, the message names the builder that was called, as matmul where its dot has failed.
void name_builder(std::string& message) {
  constexpr std::string_view prefix = "rlx.";
  const std::string builder = NamedCall::innermost().empty() ? called_builder() : std::string(NamedCall::innermost());
  const std::size_t colon = message.find(':');
  if (!builder.empty() && builder != "apply" && message.starts_with(prefix) && colon != std::string::npos)
    message.replace(prefix.size(), colon - prefix.size(), builder);
}

}  // namespace

/// An error inside of a call that is in progress ends with the line of the call.
std::string in_call(std::string message) {
  if (innermost_place) {
    name_builder(message);
    const SourceLine at = innermost_place->find_();
    return fmt::format("{}, built at {}:{}", message, at.file, at.line);
  }
  for (const Operand* call = innermost_call; call; call = call->outer_) {
    const std::string_view file = call->at_.file_name();
    if (!is_callers(file)) continue;
    name_builder(message);
    return fmt::format("{}, built at {}:{}", message, last_two_parts(file), call->at_.line());
  }
  return message;
}

void throw_error(fmt::string_view text, fmt::format_args args) { throw Error(in_call(fmt::vformat(text, args))); }
void throw_internal_error(fmt::string_view text, fmt::format_args args) { throw InternalError(fmt::vformat(text, args)); }

}  // namespace rlx
