#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf_part.h"

namespace rlx {

/// Reads one GGUF file from front to back; every size is checked against what is left of it. Where `writable` is given, the numbers of the
/// file are big-endian, and each is turned round in place as it is read.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::byte* writable, const std::string& file)
      : bytes_(bytes), writable_(writable), file_(file) {}
  /// Reads the elements of a string or an array that was read before.
  explicit GgufParser(const GgufValue& value)
      : bytes_(value.bytes()), file_(*value.file_), key_(value.key()), length_bytes_(value.length_bytes()) {}

  void read_file(GgufPart& part);
  GgufValue read_array(int depth = 0);
  std::string_view read_string();

 private:
  void read_header(GgufPart& part);
  GgufValue read_entry();
  GgufType read_type();
  void skip_elements(GgufType type, std::uint64_t count, int depth);
  void skip_numbers(GgufType type, std::size_t width, std::uint64_t count);

  TensorView read_tensor(std::uint64_t& offset);
  std::vector<std::int64_t> read_shape();
  std::span<const std::byte> tensor_data(const TensorView& tensor, std::uint64_t offset, std::size_t data_begin, std::size_t alignment);
  void turn_tensors(const std::vector<TensorView>& tensors);

  std::size_t left() const { return bytes_.size() - at_; }
  void require(std::uint64_t count, std::size_t least_bytes, std::string_view what) const;
  std::uint64_t read_number(std::size_t bytes);
  std::uint64_t read_length() { return read_number(length_bytes_); }
  std::string_view read_name(std::size_t longest);

  std::span<const std::byte> bytes_;
  std::byte* writable_ = nullptr;
  const std::string& file_;
  std::string_view key_;
  std::size_t length_bytes_ = 8;  // of counts and lengths: 4 in version 1
  std::size_t at_ = 0;
  std::uint64_t tensors_ = 0, keys_ = 0;
  std::string where_ = "header";  // for messages
};

}  // namespace rlx
