#pragma once
#include <filesystem>
#include <string>

namespace rlx {

/// " (near: 'model.gguf')" for the end of a message about a file that is missing: names in its folder that may be meant. Else empty.
std::string near_files(const std::filesystem::path& missing);

}  // namespace rlx
