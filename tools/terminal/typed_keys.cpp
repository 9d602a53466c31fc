#include "terminal/typed_keys.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cwchar>
#include <cwctype>
#include <string_view>

namespace rlx::command {
namespace {

constexpr std::wstring_view begin_mark = L"\x1b[200~", end_mark = L"\x1b[201~";

/// Whether a key follows too fast to be one that is typed: what a terminal sends for one key comes at once.
bool follows() {
  constexpr int patience = 50;  // milliseconds
  pollfd in{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&in, 1, patience) == 1;
}

bool read_byte(char& byte) {
  ssize_t count = 0;
  do count = ::read(STDIN_FILENO, &byte, 1);
  while (count < 0 && errno == EINTR);
  return count == 1;
}

std::wstring text_of(std::wstring_view sent) {
  std::wstring text;
  wchar_t last = 0;
  for (const wchar_t key : sent) {
    const bool second_half = key == L'\n' && last == L'\r';
    if (key == L'\r' || (key == L'\n' && !second_half)) text += L'\n';
    else if (key == L'\t' || std::iswcntrl(static_cast<std::wint_t>(key)) == 0) text += key;
    last = key;
  }
  return text;
}

}  // namespace

std::optional<wchar_t> TypedKeys::next() {
  if (keys_.empty() && !receive()) return std::nullopt;
  while (begin_mark.starts_with(keys_) && keys_ != begin_mark && follows() && receive()) {
  }
  if (keys_ == begin_mark) {
    for (keys_.clear(); !keys_.ends_with(end_mark) && receive();) {
    }
    if (keys_.ends_with(end_mark)) keys_.resize(keys_.size() - end_mark.size());
    pasted_ = text_of(keys_);
    keys_.clear();
    return paste;
  }
  const wchar_t key = keys_.front();
  keys_.erase(0, 1);
  return key;
}

/// Appends one key to those that have come; false at the end of the input.
bool TypedKeys::receive() {
  constexpr auto invalid = static_cast<std::size_t>(-1);
  std::mbstate_t state{};
  wchar_t key = 0;
  for (char byte = 0; read_byte(byte);) {
    std::size_t used = std::mbrtowc(&key, &byte, 1, &state);
    if (used == invalid) state = {}, used = std::mbrtowc(&key, &byte, 1, &state);  // the end of no character may begin the next one
    if (used == invalid) state = {};
    if (used > 1) continue;  // a part of a character
    keys_ += key;
    return true;
  }
  return false;
}

}  // namespace rlx::command
