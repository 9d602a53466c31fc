#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_writer.h"
#include "base/files/mapped_file.h"
#include "formats/tensors/tensor_view.h"
#include "rlx/io.h"

namespace rlx {

/// A safetensors file: 8 bytes of header length, a JSON header, and the data that the tensors cover without gap or overlap.
/// Nothing is usable before the whole file was validated. Copies share the mapping, and views stay valid while one copy lives.
class SafetensorsFile {
 public:
  /// Maps the file. Throws Error naming the file, the tensor and the field that is wrong.
  static SafetensorsFile open(const std::filesystem::path& path);
  /// Reads bytes that the caller keeps alive; `name` stands for the file in messages.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  /// In the order of the header, which need not be the order of the data.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }
  /// The tensor, or nullptr.
  const TensorView* find(std::string_view tensor) const;
  /// Throws Error that lists near names when there is no such tensor.
  const TensorView& at(std::string_view tensor) const;
  /// The tensor as an Array that keeps the mapping alive; copied only when its bytes are not aligned for the dtype.
  Array array(std::string_view tensor) const { return to_array(at(tensor), mapping_); }
  /// Keeps the bytes of all views alive; null after `parse`.
  const std::shared_ptr<const MappedFile>& mapping() const { return mapping_; }

 private:
  std::string name_;
  std::vector<TensorView> tensors_;
  std::vector<std::size_t> by_name_;  // indices into tensors_, sorted by name
  Metadata metadata_;
  std::shared_ptr<const MappedFile> mapping_;
};

/// Writes a safetensors file whose data needs not be in memory at once: what it holds is announced first. It appears under its name when it
/// is committed, or not at all.
class SafetensorsWriter {
 public:
  /// Of `tensors` name, dtype and shape count, not the data. Throws Error as `write_safetensors` does.
  SafetensorsWriter(const std::filesystem::path& target, std::span<const TensorView> tensors, const Metadata& metadata = {});

  /// The order in which the data must follow, as indices of `tensors`.
  std::span<const std::size_t> order() const { return order_; }
  /// The next bytes, in pieces of any size.
  void write(std::span<const std::byte> bytes);
  /// Throws InternalError unless all bytes that were announced have been written.
  void commit();

 private:
  FileWriter file_;
  std::string name_;
  std::vector<std::size_t> order_;
  std::size_t left_ = 0;  // bytes of data still to come
};

/// Writes a safetensors file atomically. The header lists the tensors in the given order; the data is ordered by falling
/// element size, so that every tensor is aligned for its dtype. The same arguments give the same bytes.
/// Throws Error for a dtype that the format lacks (i4, u4, c128), a name given twice, or data that does not fit its shape.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors, const Metadata& metadata = {});

/// The format's name of a dtype ("BF16"), or an empty view where it has none.
std::string_view safetensors_dtype_name(DType dtype);
/// The dtype of a name of the format, or nothing.
std::optional<DType> parse_safetensors_dtype(std::string_view name);

}  // namespace rlx
