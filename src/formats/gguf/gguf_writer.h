#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_writer.h"
#include "formats/gguf/gguf_metadata.h"
#include "formats/tensors/tensor_view.h"

namespace rlx {

/// All that stands before the data of a GGUF file, with its padding. `file` stands for it in messages. Throws as GgufWriter does.
std::string gguf_header(const GgufMetadata& metadata, std::span<const TensorView> tensors, std::string_view file);

/// Writes a GGUF file of version 3, little-endian: what it holds is announced first, then the tensors follow one after the other, in pieces
/// of any size. The file appears under its name when it is committed, or not at all; until then an old one stays.
class GgufWriter {
 public:
  /// Of `tensors` the name, shape and format count, not the data. Throws Error naming the file and the tensor for a name that is empty,
  /// longer than 64 bytes, not UTF-8 or given twice, a shape of none or more than four sizes, and rows that are not whole blocks.
  GgufWriter(const std::filesystem::path& target, const GgufMetadata& metadata, std::span<const TensorView> tensors);

  /// The next bytes of the tensors' data, in the order announced; a piece belongs to one tensor. Throws Error when the disk is full.
  void write(std::span<const std::byte> bytes);
  /// Throws InternalError unless every tensor was written whole.
  void commit();

  std::size_t file_bytes() const { return file_bytes_; }

 private:
  void pad();

  FileWriter file_;
  std::string name_;
  std::vector<std::size_t> bytes_;  // of each tensor
  std::size_t alignment_;
  std::size_t current_ = 0, written_ = 0;  // the tensor, and how much of it is there
  std::size_t file_bytes_ = 0;
};

}  // namespace rlx
