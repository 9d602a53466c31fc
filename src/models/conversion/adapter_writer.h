#pragma once
#include <filesystem>
#include <vector>

namespace rlx {

/// Writes the adapter at `adapter` (see AdapterFile::open), whose model `base` is a folder or a GGUF file, in one form or the other: for
/// models in GGUF files as a GGUF file, for folders as PEFT lays it out. Factors are those of the adapter but for the order of their rows
/// and columns; of matrices that are one tensor in the other form they are joined, with ranks that add up, and a scale that the form cannot
/// say is in the second factor. Throws Error naming the file for an adapter of another model or of tensors that the form has not; then
/// nothing is written.
void write_gguf_adapter(const std::filesystem::path& adapter, const std::filesystem::path& base, const std::filesystem::path& target);
/// Gives the names of its files.
std::vector<std::filesystem::path> write_adapter_folder(const std::filesystem::path& adapter, const std::filesystem::path& base,
                                                        const std::filesystem::path& folder);

}  // namespace rlx
