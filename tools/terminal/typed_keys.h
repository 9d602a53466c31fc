#pragma once
#include <optional>
#include <string>

namespace rlx::command {

/// The keys that come from the terminal of standard input. Each paste that the terminal puts marks around (see begin_editing) is one key,
/// whatever the keys before it began.
class TypedKeys {
 public:
  static constexpr wchar_t paste = 0x9F;  // a control character that no key sends

  /// Waits for a key; nothing at the end of the input. What is no character in the encoding of the locale is left out.
  std::optional<wchar_t> next();

  /// The text of the last paste: lines end as in files (terminals send CR), and no other control character but a tab is left, so that
  /// nothing pasted is a key.
  const std::wstring& pasted() const { return pasted_; }

 private:
  bool receive();

  std::wstring keys_;  // that have come ahead
  std::wstring pasted_;
};

}  // namespace rlx::command
