#include "lowering/object_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <xxhash.h>

#include "base/files/file_writer.h"
#include "base/files/mapped_file.h"
#include "rlx/error.h"

namespace rlx {

std::filesystem::path default_cache_folder() {
  if (const char* own = std::getenv("RLX_CACHE")) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/') return std::filesystem::path(xdg) / "rlx";
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / ".cache" / "rlx";
  return {};
}

namespace {

constexpr std::uint64_t magic = 0x31304A424F584C52;  // "RLXOBJ01"

struct Header {
  std::uint64_t magic;
  XXH128_hash_t key;
  XXH128_hash_t content;
};

/// Root may do everything in any case.
bool is_ours(const struct stat& entry) { return entry.st_uid == ::geteuid() || entry.st_uid == 0; }
bool others_write(const struct stat& entry) { return (entry.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

std::string of_another_user(const std::filesystem::path& path) {
  return fmt::format("{}: belongs to another user, whose code is not run", path.string());
}

/// Whether a file holds what only we, or root, can have written. A link, and one of ours that others may write to, are removed.
bool is_trusted(const std::filesystem::path& file, std::string& reason) {
  struct stat entry{};
  if (::lstat(file.c_str(), &entry) != 0) return false;
  if (!is_ours(entry)) return reason = of_another_user(file), false;
  if (!S_ISREG(entry.st_mode) || others_write(entry)) return ::unlink(file.c_str()), false;
  return true;
}

}  // namespace

/// Why the folder is not used; empty: it is, or it does not exist. In one that is sticky, others cannot replace our files.
std::string ObjectCache::refusal() const {
  struct stat folder{};
  if (::stat(folder_.c_str(), &folder) != 0) return {};
  if (!is_ours(folder)) return of_another_user(folder_);
  if (others_write(folder) && (folder.st_mode & S_ISVTX) == 0)
    return fmt::format("{}: others may write to it, and what is there is run (chmod go-w makes it ours)", folder_.string());
  return {};
}

std::filesystem::path ObjectCache::file_of(std::string_view key) const {
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return folder_ / fmt::format("{:016x}{:016x}.o", hash.high64, hash.low64);
}

std::optional<std::vector<std::byte>> ObjectCache::find(std::string_view key, std::string& reason) const {
  if (folder_.empty()) return std::nullopt;
  if (std::string refused = refusal(); !refused.empty()) return reason = std::move(refused), std::nullopt;
  const std::filesystem::path path = file_of(key);
  if (!is_trusted(path, reason)) return std::nullopt;
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
    std::filesystem::create_directories(folder_.parent_path(), error);
    ::mkdir(folder_.c_str(), S_IRWXU);
    std::string refused = refusal();
    if (refused.empty()) is_trusted(file_of(key), refused);  // a link would lead elsewhere
    if (!refused.empty()) return reason = std::move(refused), false;
    const Header header{magic, XXH3_128bits(key.data(), key.size()), XXH3_128bits(object.data(), object.size())};
    FileWriter writer(file_of(key));
    writer.write(std::as_bytes(std::span(&header, 1)));
    writer.write(object);
    writer.commit();
    std::filesystem::permissions(file_of(key), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, error);
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

}  // namespace rlx
