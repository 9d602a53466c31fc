#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "rlx/model.h"

// What models of the fixtures answer. One thread computes: they are too small for two.

namespace rlx::test {

/// On a device, without a cache on disk.
inline Session session_on(const Device& device) { return Session(device, {.threads = 1, .cache_folder = std::filesystem::path()}); }

inline const Session& one_thread() {
  static const Session session(Device::cpu(), {.threads = 1});
  return session;
}

inline Model open_small(const std::filesystem::path& path, ModelOptions options = {}) {
  return Model::open(path, one_thread(), std::move(options));
}

/// All of an answer.
inline std::vector<std::int32_t> ids_of(Generation generation) {
  while (generation.next_token()) {
  }
  return {generation.ids().begin(), generation.ids().end()};
}

/// Its pieces, one behind the other.
template <class Answer>
std::string text_of(Answer&& generation) {
  std::string text;
  for (const std::string& piece : generation) text += piece;
  return text;
}

}  // namespace rlx::test
