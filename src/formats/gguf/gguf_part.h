#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/mapped_file.h"
#include "formats/gguf/gguf_value.h"
#include "formats/tensors/tensor_view.h"

namespace rlx {

/// One file of a GGUF model, checked as a whole. Its values point at `name` and into the bytes: it stays where it is.
struct GgufPart {
  std::string name;
  std::shared_ptr<const MappedFile> mapping;  // null for bytes that the caller keeps
  std::vector<std::byte> turned;              // of a big-endian file: its bytes with every number turned round
  std::size_t file_bytes = 0;
  std::uint32_t version = 0;
  bool big_endian = false;
  std::size_t alignment = 32;
  std::vector<GgufValue> metadata;
  std::vector<TensorView> tensors;

  GgufPart() = default;
  GgufPart(const GgufPart&) = delete;
  GgufPart& operator=(const GgufPart&) = delete;
};

/// Throws Error naming the file, the key or the tensor, and what is wrong with it.
std::unique_ptr<const GgufPart> read_gguf_part(std::span<const std::byte> bytes, std::string name,
                                               std::shared_ptr<const MappedFile> mapping);

/// The value of a key, or nullptr.
const GgufValue* find_value(std::span<const GgufValue> metadata, std::string_view key);

}  // namespace rlx
