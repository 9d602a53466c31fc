#pragma once
#include <string_view>

namespace rlx {

/// While it lives, errors of builders on this thread begin with this name instead of that of the op which failed.
class NamedCall {
 public:
  explicit NamedCall(std::string_view name);
  NamedCall(const NamedCall&) = delete;
  NamedCall& operator=(const NamedCall&) = delete;
  ~NamedCall();

  /// The name of the one that began last; empty where there is none.
  static std::string_view innermost();

 private:
  std::string_view outer_;
};

}  // namespace rlx
