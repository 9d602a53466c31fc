#include "base/files/near_files.h"

#include <vector>

#include "base/names.h"

namespace rlx {

std::string near_files(const std::filesystem::path& missing) {
  constexpr std::size_t most = 4096;  // of a folder that holds more nobody knows the names
  std::error_code error;
  if (std::filesystem::exists(missing, error)) return "";
  const std::filesystem::path whole = missing.has_filename() ? missing : missing.parent_path();  // "folder/" names the folder
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(whole.has_parent_path() ? whole.parent_path() : ".", error), end;
  for (; !error && entry != end && names.size() < most; entry.increment(error)) names.push_back(entry->path().filename().string());
  return near_hint(whole.filename().string(), std::vector<std::string_view>(names.begin(), names.end()));
}

}  // namespace rlx
