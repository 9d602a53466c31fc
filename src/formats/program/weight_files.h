#pragma once
#include <span>

#include "lowering/program_file/parts.h"
#include "rlx/program_file.h"

namespace rlx {

/// Where a program file says that values are, and what their files were then.
struct WeightFile {
  std::string name, file, tensor;
  std::int64_t bytes = 0;
  std::string hash;
};

template <class Way>
void list_parts(Way& way, Of<Way, WeightFile>& weight) {
  way("weight", weight.name), way("weight file", weight.file), way("tensor", weight.tensor), way("file bytes", weight.bytes);
  way("file hash", weight.hash);
}

/// Paths are kept from the folder of the program file on where they lead below it, else from the root. Throws Error for files that cannot
/// be read.
std::vector<WeightFile> weight_files(const std::filesystem::path& program, std::span<const ProgramFile::Source> sources);
/// The values. Throws Error for a file that is gone or was altered.
std::map<std::string, Array> load_weights(const std::filesystem::path& program, std::span<const WeightFile> weights);

}  // namespace rlx
