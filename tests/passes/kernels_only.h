#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "ops/sample_operands.h"
#include "rlx/session.h"

namespace rlx::test {

inline constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

inline SessionOptions without_disk() {
  SessionOptions options;
  options.cache_folder = "";
  return options;
}
/// A session that keeps nothing on disk.
inline const Session& kernels_only() {
  static const Session session(Device::cpu(), without_disk());
  return session;
}

inline std::map<std::string, Feed> feeds(const std::map<std::string, Array>& inputs) { return {inputs.begin(), inputs.end()}; }

inline std::size_t count_of(const Executable& program, std::string_view how) {
  std::size_t count = 0;
  for (const NodeReport& node : program.explain()) count += node.how == how;
  return count;
}

inline Array array_of(DType t, const std::vector<double>& values) {
  Array array(t, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) array.set_double(static_cast<std::int64_t>(i), values[i]);
  return array;
}

inline Array bytes_as(DType t, std::int64_t count, const std::function<int(std::int64_t)>& byte) {
  Array array(t, {count});
  for (std::size_t i = 0; i < array.bytes().size(); ++i)
    array.mutable_bytes()[i] = static_cast<std::byte>(byte(static_cast<std::int64_t>(i)));
  return array;
}

inline void expect_same_bytes(const Array& seen, const Array& wanted) {
  ASSERT_EQ(type_of(seen).to_string(), type_of(wanted).to_string());
  for (std::size_t i = 0; i < wanted.bytes().size(); ++i)
    ASSERT_EQ(static_cast<int>(seen.bytes()[i]), static_cast<int>(wanted.bytes()[i])) << "byte " << i;
}

}  // namespace rlx::test
