#include "backends/cpu/object_cache.h"

#include <algorithm>
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

bool ObjectCache::store(std::string_view key, std::string_view object, std::string& reason) {
  if (folder_.empty()) return true;
  try {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    const Header header{magic, XXH3_128bits(key.data(), key.size()), XXH3_128bits(object.data(), object.size())};
    FileWriter writer(file_of(key));
    writer.write(std::as_bytes(std::span(&header, 1)));
    writer.write(object);
    writer.commit();
    const std::int64_t sweep_at = most_bytes_ / 16;  // looking through the folder at every store would cost more than the store
    if (unswept_.fetch_add(static_cast<std::int64_t>(object.size())) >= sweep_at) {
      unswept_ = 0;
      remove_oldest();
    }
    return true;
  } catch (const Error& e) {
    reason = e.what();
    return false;
  }
}

/// Another process may remove files at the same time, so that every step may fail; the next store tries again.
void ObjectCache::remove_oldest() const {
  struct File {
    std::filesystem::file_time_type written;
    std::filesystem::path path;
    std::int64_t bytes;
  };
  std::vector<File> files;
  std::int64_t total = 0;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder_, error); !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() != ".o") continue;
    std::error_code gone;
    const auto bytes = static_cast<std::int64_t>(entry->file_size(gone));
    const auto written = gone ? std::filesystem::file_time_type() : entry->last_write_time(gone);
    if (gone) continue;
    files.push_back({written, entry->path(), bytes});
    total += bytes;
  }
  if (total <= most_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.written < b.written; });
  for (const File& file : files) {
    if (total <= most_bytes_ / 2) break;  // so that the next removal is far away
    std::error_code gone;
    std::filesystem::remove(file.path, gone);
    total -= file.bytes;
  }
}

}  // namespace rlx::cpu
