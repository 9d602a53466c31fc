#include "base/files/file_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ranges>
#include <set>
#include <system_error>
#include <utility>

#include "rlx/error.h"

namespace rlx {
namespace {

/// The file that a chain of links ends at, also when that file does not exist yet.
std::filesystem::path follow_links(std::filesystem::path path) {
  std::error_code no_link;
  for (int links = 0; links < 40; ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, no_link);
    if (no_link) return path;
    path = path.parent_path() / next;
  }
  return path;
}

/// The temporary files and made folders that exist. They are made, renamed and removed under the mutex, so that whoever holds it sees all
/// of them.
struct Temporaries {
  std::mutex mutex;
  std::set<std::filesystem::path> paths, folders;
};

/// Never destroyed: a signal may end the process while its static objects are being destroyed.
Temporaries& temporaries() {
  static auto* const all = new Temporaries;
  return *all;
}

/// Whether the open file is this process's own for as long as it stays open. The lock of a file that is `found` tells that its writer has
/// ended; where files cannot be locked, only a new one is sure.
bool take(int descriptor, const std::filesystem::path& path, bool found) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && (found || errno == EWOULDBLOCK)) return false;
  struct stat opened{}, named{};
  if (::fstat(descriptor, &opened) != 0 || ::lstat(path.c_str(), &named) != 0) return false;
  // Not where its writer committed it meanwhile, nor what somebody else has put there.
  if (opened.st_ino != named.st_ino || opened.st_dev != named.st_dev || opened.st_nlink != 1) return false;
  return !found || (S_ISREG(opened.st_mode) && opened.st_uid == ::geteuid() && ::ftruncate(descriptor, 0) == 0);
}

/// A new file, or one that an interrupted process left; -1 with errno, EEXIST where the file is another writer's.
int open_own(const std::filesystem::path& path) {
  int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const bool found = descriptor < 0 && errno == EEXIST;
  if (found) descriptor = ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor >= 0 && take(descriptor, path, found)) return descriptor;
  if (descriptor >= 0) ::close(descriptor);
  if (descriptor >= 0 || found) errno = EEXIST;
  return -1;
}

}  // namespace

FileWriter::FileWriter(const std::filesystem::path& target) : target_(follow_links(target)) {
  struct stat status{};
  const bool exists = ::stat(target_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail("{}: is a directory, it cannot be replaced by a file", target_.string());
  if (exists && !S_ISREG(status.st_mode)) fail("{}: is not a regular file, it cannot be replaced", target_.string());
  open_temporary();
  if (!exists) return;
  mode_ = status.st_mode & 07777;
  // Not yet read-only: who takes over what a killed writer leaves must be able to write it.
  if (::fchmod(descriptor_, *mode_ | S_IWUSR) != 0) fail_with_errno("cannot set the permissions");
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      mode_(other.mode_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      lock_(std::exchange(other.lock_, -1)) {}

FileWriter::~FileWriter() { discard(); }

// mkstemp would give the file mode 0600 for ever; O_EXCL with a mode lets the umask decide as for any other new file. Few names are tried,
// so that what a process leaves that is killed is found by the next that writes the same target.
void FileWriter::open_temporary() {
  const std::scoped_lock lock(temporaries().mutex);
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::filesystem::path path = target_;
    path += fmt::format(".{}.tmp", attempt);
    const auto [entry, is_new] = temporaries().paths.insert(path);
    if (!is_new) continue;
    descriptor_ = open_own(path);
    if (descriptor_ >= 0) {
      temporary_ = std::move(path);
      return;
    }
    const int reason = errno;
    temporaries().paths.erase(entry);
    errno = reason;
    if (reason != EEXIST) break;
  }
  fail("{}: cannot create: {}", target_.string(), std::generic_category().message(errno));
}

void FileWriter::write(std::span<const std::byte> bytes) {
  if (descriptor_ < 0) fail_internal("FileWriter: write to '{}' after its end", target_.string());
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void FileWriter::finish() {
  if (descriptor_ < 0) fail_internal("FileWriter: end of '{}' after its end", target_.string());
  lock_ = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);  // a copy keeps the file this writer's until it has its name
  const bool closed = ::close(descriptor_) == 0;
  descriptor_ = -1;
  if (!closed) fail_with_errno("cannot write");
}

void FileWriter::commit() { commit_all(std::span(this, 1)); }

void FileWriter::commit_all(std::span<FileWriter> writers) {
  for (FileWriter& writer : writers)
    if (writer.descriptor_ >= 0 || writer.temporary_.empty()) writer.finish();
  const std::scoped_lock lock(temporaries().mutex);
  for (FileWriter& writer : writers) writer.rename_temporary();
}

/// The caller holds the mutex of the temporaries.
void FileWriter::rename_temporary() {
  const bool renamed = (!mode_ || ::chmod(temporary_.c_str(), *mode_) == 0) && ::rename(temporary_.c_str(), target_.c_str()) == 0;
  const int reason = errno;
  if (!renamed) ::unlink(temporary_.c_str());
  temporaries().paths.erase(temporary_);
  temporary_.clear();
  close_files();
  if (!renamed) fail("{}: cannot write: {}", target_.string(), std::generic_category().message(reason));
}

void FileWriter::discard() noexcept {
  if (!temporary_.empty()) {
    const std::scoped_lock lock(temporaries().mutex);
    ::unlink(temporary_.c_str());
    temporaries().paths.erase(temporary_);
    temporary_.clear();
  }
  close_files();
}

void FileWriter::close_files() noexcept {
  for (int* file : {&descriptor_, &lock_})
    if (const int open = std::exchange(*file, -1); open >= 0) ::close(open);
}

void FileWriter::fail_with_errno(std::string_view action) {
  const int reason = errno;
  discard();
  fail("{}: {}: {}", target_.string(), action, std::generic_category().message(reason));
}

std::unique_lock<std::mutex> remove_temporary_files() {
  std::unique_lock lock(temporaries().mutex);
  for (const std::filesystem::path& path : temporaries().paths) ::unlink(path.c_str());
  for (const std::filesystem::path& folder : std::views::reverse(temporaries().folders)) ::rmdir(folder.c_str());  // inner ones first
  return lock;
}

MadeFolder::MadeFolder(const std::filesystem::path& path) {
  const std::scoped_lock lock(temporaries().mutex);
  std::filesystem::path folder;
  for (const std::filesystem::path& name : path) {
    folder /= name;
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) continue;
    if (std::filesystem::create_directory(folder, error)) made_.push_back(*temporaries().folders.insert(folder).first);
    if (!error) continue;
    remove();
    const bool is_there = error == std::errc::file_exists;
    fail("{}: the folder cannot be made: {}", folder.string(), is_there ? "a file or a device has this name" : error.message());
  }
}

MadeFolder::~MadeFolder() {
  const std::scoped_lock lock(temporaries().mutex);
  remove();
}

/// The caller holds the mutex of the temporaries.
void MadeFolder::remove() noexcept {
  for (const std::filesystem::path& folder : std::views::reverse(made_)) {
    ::rmdir(folder.c_str());
    temporaries().folders.erase(folder);
  }
}

void write_file(const std::filesystem::path& target, std::span<const std::byte> bytes) {
  FileWriter writer(target);
  writer.write(bytes);
  writer.commit();
}

void write_file(const std::filesystem::path& target, std::string_view text) { write_file(target, std::as_bytes(std::span(text))); }

}  // namespace rlx
