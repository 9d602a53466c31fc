#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/files/mapped_file.h"
#include "lowering/program_file/reader.h"
#include "lowering/program_file/writer.h"

// The bytes of a program file: a header, a record for each blob, the directory, and the blobs, each at a multiple of 64. All numbers are
// little-endian. Header and records are covered by one hash, and each blob by its own.

namespace rlx {

/// Raise it when what is written changes.
inline constexpr std::uint32_t program_file_version = 4;

/// A hash in hexadecimal digits.
std::string hash_text(const std::array<std::uint64_t, 2>& hash);

void write_container(const std::filesystem::path& file, const Blobs& blobs, const std::string& directory);

/// A container whose header was checked. Throws Error: names the file, the field, what was seen and what is allowed.
class ProgramContainer {
 public:
  /// `owner` keeps the bytes.
  ProgramContainer(std::string name, std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  const std::string& name() const { return name_; }
  /// Of all that it has, as records and directory have the hashes of the blobs.
  const std::array<std::uint64_t, 2>& hash() const { return hash_; }
  std::span<const std::byte> directory() const { return directory_; }
  std::int64_t blobs() const { return static_cast<std::int64_t>(records_.size()); }
  /// Throws Error where it is not as it was written. `number` is below `blobs`.
  FoundBlob blob(std::int64_t number) const;

  struct Record {
    std::uint64_t offset, bytes;
    std::array<std::uint64_t, 2> hash;
  };

 private:
  std::string name_;
  std::span<const std::byte> bytes_, directory_;
  std::array<std::uint64_t, 2> hash_{};
  std::vector<Record> records_;
  std::shared_ptr<const void> owner_;
};

}  // namespace rlx
