#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file_writer.h"
#include "rlx/array.h"

namespace rlx {

/// Reads an .npy file (versions 1.0, 2.0, 3.0) of booleans, integers, f16, f32, f64 or complex numbers. Little-endian row-major
/// data stays mapped, and the Array keeps the mapping; big-endian or column-major data is converted into memory.
/// The whole file is validated: object arrays (pickles), structured dtypes and bytes after the data are refused.
/// Throws Error naming the file and the field.
Array read_npy(const std::filesystem::path& path);

/// The same for bytes in memory, which `owner` keeps alive (or the caller, when it is null); `name` stands for the file in messages.
Array parse_npy(std::span<const std::byte> bytes, std::string_view name, std::shared_ptr<const void> owner = nullptr);

/// Writes version 1.0, little-endian, row-major, atomically. Throws Error for a dtype that numpy lacks (bf16, f8, i4, u4).
void write_npy(const std::filesystem::path& path, const Array& array);

/// The same up to its last step: the file appears when the writer that is returned is committed.
FileWriter begin_npy(const std::filesystem::path& path, const Array& array);

/// Whether numpy has the dtype.
bool npy_holds(DType dtype);

}  // namespace rlx
