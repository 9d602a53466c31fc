#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "rlx/session.h"

namespace rlx::test {

/// One for all tests of a program; it compiles what it runs, whatever was compiled before.
inline const Session& session() {
  static const Session shared = [] {
    SessionOptions options;
    options.cache_folder = "";
    return Session(Device::cpu(), options);
  }();
  return shared;
}

inline void expect_error(const std::string& seen, std::initializer_list<std::string_view> parts) {
  for (std::string_view part : parts) EXPECT_NE(seen.find(part), std::string::npos) << seen << "\nmust contain: " << part;
}

}  // namespace rlx::test
