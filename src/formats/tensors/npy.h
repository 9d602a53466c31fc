#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/files/file_writer.h"
#include "rlx/io.h"

namespace rlx {

/// `load_npy` for bytes in memory, which `owner` keeps alive (or the caller, when it is null); `name` stands for the file in messages.
Array parse_npy(std::span<const std::byte> bytes, std::string_view name, std::shared_ptr<const void> owner = nullptr);

/// `save_npy` up to its last step: the file appears when the writer that is returned is committed.
FileWriter begin_npy(const std::filesystem::path& path, const Array& array);

/// Whether numpy reads files of the dtype only where the package ml_dtypes is imported.
bool needs_ml_dtypes(DType dtype);

/// Where the elements begin in the file of an array.
std::size_t npy_header_bytes(const Array& array);

}  // namespace rlx
