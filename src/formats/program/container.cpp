#include "formats/program/container.h"

#include <cstring>

#include "base/checked.h"
#include "base/files/file_writer.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::array<char, 8> magic{'r', 'l', 'x', '-', 'p', 'r', 'o', 'g'};
constexpr std::uint64_t alignment = 64;

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t unused = 0;
  std::uint64_t file_bytes, blobs, directory_bytes;
  std::array<std::uint64_t, 2> hash;  // of the records and the directory
  std::uint64_t also_unused = 0;
};
static_assert(sizeof(Header) == alignment && sizeof(ProgramContainer::Record) == 32);

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

void write_at(FileWriter& to, std::uint64_t& at, std::uint64_t offset, std::span<const std::byte> bytes) {
  static constexpr std::array<std::byte, alignment> zeros{};
  to.write(std::span(zeros).first(offset - at));
  to.write(bytes);
  at = offset + bytes.size();
}

}  // namespace

std::string hash_text(const std::array<std::uint64_t, 2>& hash) { return fmt::format("{:016x}{:016x}", hash[1], hash[0]); }

void write_container(const std::filesystem::path& file, const Blobs& blobs, const std::string& directory) {
  std::string head;
  std::uint64_t end = sizeof(Header) + blobs.all().size() * sizeof(ProgramContainer::Record) + directory.size();
  for (const Blobs::Blob& blob : blobs.all()) {
    const ProgramContainer::Record record{aligned(end), blob.bytes.size(), blob.hash};
    head.append(reinterpret_cast<const char*>(&record), sizeof record);
    end = record.offset + record.bytes;
  }
  head += directory;
  const Header header{.magic = magic,
                      .version = program_file_version,
                      .file_bytes = end,
                      .blobs = blobs.all().size(),
                      .directory_bytes = directory.size(),
                      .hash = content_hash(std::as_bytes(std::span(head)))};
  FileWriter to(file);
  std::uint64_t at = 0;
  write_at(to, at, 0, std::as_bytes(std::span(&header, 1)));
  write_at(to, at, at, std::as_bytes(std::span(head)));
  for (const Blobs::Blob& blob : blobs.all()) write_at(to, at, aligned(at), blob.bytes);
  to.commit();
}

ProgramContainer::ProgramContainer(std::string name, std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
    : name_(std::move(name)), bytes_(bytes), owner_(std::move(owner)) {
  Header header{};
  if (bytes.size() < sizeof header) fail("{}: it has {} bytes (a program file has {} and more)", name_, bytes.size(), sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != magic)
    fail("{}: not a program file: it does not begin with '{}'", name_, std::string_view(magic.data(), magic.size()));
  if (header.version != program_file_version)
    fail("{}: format version is {} (allowed: {}): compile it again", name_, header.version, program_file_version);
  if (header.file_bytes != bytes.size()) fail("{}: it has {} bytes, and was written with {}", name_, bytes.size(), header.file_bytes);
  const auto records = checked_mul(header.blobs, std::uint64_t{sizeof(Record)});
  const auto head = records ? checked_add(*records, header.directory_bytes) : std::nullopt;
  if (!head || *head > bytes.size() - sizeof header)
    fail("{}: blobs {} and directory bytes {} are more than its {} bytes hold", name_, header.blobs, header.directory_bytes, bytes.size());
  const auto covered = bytes.subspan(sizeof header, *head);
  hash_ = header.hash;
  if (content_hash(covered) != hash_) fail("{}: hash of the directory is another than that in the header: it was altered", name_);
  records_.resize(header.blobs);
  if (*records > 0) std::memcpy(records_.data(), covered.data(), *records);
  directory_ = covered.subspan(*records);
  for (std::size_t i = 0; i < records_.size(); ++i)
    if (records_[i].offset % alignment != 0 || records_[i].offset > bytes.size() || records_[i].bytes > bytes.size() - records_[i].offset)
      fail("{}: blob {} is {} bytes at {} (allowed: within {} bytes, at multiples of {})", name_, i, records_[i].bytes, records_[i].offset,
           bytes.size(), alignment);
}

FoundBlob ProgramContainer::blob(std::int64_t number) const {
  const Record& record = records_.at(static_cast<std::size_t>(number));
  const auto found = bytes_.subspan(record.offset, record.bytes);
  if (content_hash(found) != record.hash)
    fail("{}: hash of blob {}, {} bytes at {}, is another than that in its record: it was altered", name_, number, record.bytes,
         record.offset);
  return {found, owner_};
}

}  // namespace rlx
