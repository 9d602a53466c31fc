#pragma once
#include <cstdint>
#include <fstream>
#include <string>

namespace rlx::test {

/// Bytes of this process in memory that belong to no file; -1 where the system does not say.
inline std::int64_t own_bytes_in_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::int64_t kibibytes = 0; word == "RssAnon:" && status >> kibibytes) return kibibytes * 1024;
  return -1;
}

}  // namespace rlx::test
