#pragma once
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rlx {

/// Writes a file that appears whole or not at all: the bytes go to a temporary name beside the target, which `commit` renames.
/// Without `commit` (an exception, an early return) the temporary is removed and an existing target is untouched.
/// Writes are not buffered: hand over large pieces. Every failure throws Error naming the target and the system's reason.
/// A process that ends by a signal calls `remove_temporary_files`; what one leaves that is killed is taken over by the next writer of the
/// target.
class FileWriter {
 public:
  /// A symbolic link is followed, a target that exists keeps its permissions; directories, pipes and devices are refused.
  explicit FileWriter(const std::filesystem::path& target);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Ends the writing; the file is still to be committed. A full disk may show only now.
  void finish();
  /// Makes the file visible under its name; the writer is finished after it.
  void commit();
  /// Makes several files visible, none before all of them are finished. Only a rename that the system refuses can leave some without the
  /// others.
  static void commit_all(std::span<FileWriter> writers);

 private:
  void open_temporary();
  void rename_temporary();
  void discard() noexcept;
  void close_files() noexcept;
  [[noreturn]] void fail_with_errno(std::string_view action);

  std::filesystem::path target_, temporary_;  // temporary_: empty once there is none
  std::optional<unsigned> mode_;              // of a target that exists
  int descriptor_ = -1;
  int lock_ = -1;  // of a finished file, which has a lock for as long as it is open
};

/// A folder to be filled, made when missing, as are those above it; the ones that it made itself it removes again, unless something is in
/// them. It must outlive the writers of its files.
class MadeFolder {
 public:
  /// Throws Error when there is no such folder and none can be made.
  explicit MadeFolder(const std::filesystem::path& path);
  ~MadeFolder();
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;

 private:
  void remove() noexcept;

  std::vector<std::filesystem::path> made_;  // each in the one before it
};

/// Removes the temporary files of all writers and the made folders that are empty then, for a process that ends at once: until the lock is
/// released no writer makes a file or commits one.
[[nodiscard]] std::unique_lock<std::mutex> remove_temporary_files();

/// Writes `bytes` as the whole content of `target`, atomically.
void write_file(const std::filesystem::path& target, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& target, std::string_view text);

}  // namespace rlx
