#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf/gguf_value.h"
#include "formats/tensors/tensor_view.h"

namespace rlx {

struct GgufPart;

/// A GGUF file, or all parts of a split one: metadata and tensors, in the order of the file. Versions 1 to 3 in both byte orders. Nothing
/// is usable before everything was validated. Files are mapped; one of big-endian numbers is read into memory and turned round, so that
/// every view is little-endian. Copies share the contents, and views stay valid while one copy lives.
class GgufFile {
 public:
  /// `path` may be any part of a split file: the others lie beside it and are opened too. Throws Error naming the file, the key or the
  /// tensor, and what is wrong; missing parts are named together.
  static GgufFile open(const std::filesystem::path& path);
  /// Reads one file that is not split from bytes that the caller keeps alive; `name` stands for the file in messages.
  static GgufFile parse(std::span<const std::byte> bytes, std::string name);

  /// The path that was opened.
  const std::string& name() const;
  std::uint32_t version() const;
  bool is_big_endian() const;
  /// Of the tensors' offsets: `general.alignment`, or 32.
  std::size_t alignment() const;
  /// Bytes of all parts.
  std::size_t file_bytes() const;
  /// The path of each part; one where the file is not split.
  std::vector<std::string> part_names() const;

  /// Of a split file that of its first part.
  std::span<const GgufValue> metadata() const;
  /// The value of a key, or nullptr.
  const GgufValue* find_value(std::string_view key) const;
  /// Throws Error that lists near keys when there is no such key.
  const GgufValue& value(std::string_view key) const;

  /// Shapes are outermost first, as everywhere in RLX; `format` is never null.
  std::span<const TensorView> tensors() const;
  /// The tensor, or nullptr.
  const TensorView* find(std::string_view tensor) const;
  /// Throws Error that lists near names when there is no such tensor.
  const TensorView& at(std::string_view tensor) const;
  /// The tensor as an Array that keeps the file mapped: without a copy where its type is plain, else decoded to f32.
  Array array(std::string_view tensor) const;
  /// Keeps the bytes of all views alive.
  std::shared_ptr<const void> owner() const { return contents_; }

 private:
  struct Contents;

  explicit GgufFile(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  static std::shared_ptr<const Contents> join(std::string name, std::vector<std::unique_ptr<const GgufPart>> parts);

  std::shared_ptr<const Contents> contents_;
};

/// Whether the bytes begin like a GGUF file.
bool looks_like_gguf(std::span<const std::byte> bytes);

}  // namespace rlx
