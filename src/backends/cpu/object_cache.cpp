#include "backends/cpu/object_cache.h"

#include <cstring>

#include <xxhash.h>

#include "base/file_writer.h"
#include "base/mapped_file.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

constexpr std::uint64_t magic = 0x31304A424F584C52;  // "RLXOBJ01"

struct Header {
  std::uint64_t magic;
  XXH128_hash_t key;
  XXH128_hash_t content;
};

}  // namespace

std::filesystem::path ObjectCache::file_of(std::string_view key) const {
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return folder_ / fmt::format("{:016x}{:016x}.o", hash.high64, hash.low64);
}

std::optional<std::vector<std::byte>> ObjectCache::find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const std::filesystem::path path = file_of(key);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  try {
    const MappedFile file = MappedFile::open(path);
    const auto bytes = file.bytes();
    Header header{};
    if (bytes.size() <= sizeof header) return std::nullopt;
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto object = bytes.subspan(sizeof header);
    const XXH128_hash_t wanted = XXH3_128bits(key.data(), key.size());
    if (header.magic != magic || !XXH128_isEqual(header.key, wanted) ||
        !XXH128_isEqual(header.content, XXH3_128bits(object.data(), object.size())))
      return std::nullopt;
    return std::vector<std::byte>(object.begin(), object.end());
  } catch (const Error&) {  // unreadable: as good as absent
    return std::nullopt;
  }
}

bool ObjectCache::store(std::string_view key, std::string_view object, std::string& reason) const {
  if (folder_.empty()) return true;
  try {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    const Header header{magic, XXH3_128bits(key.data(), key.size()), XXH3_128bits(object.data(), object.size())};
    FileWriter writer(file_of(key));
    writer.write(std::as_bytes(std::span(&header, 1)));
    writer.write(object);
    writer.commit();
    return true;
  } catch (const Error& e) {
    reason = e.what();
    return false;
  }
}

}  // namespace rlx::cpu
