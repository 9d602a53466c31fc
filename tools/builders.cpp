#include "builders.h"

#include <algorithm>

namespace rlx::command {

bool Builder::makes(std::string_view op) const {
  for (std::string_view rest = ops; !rest.empty();) {
    const auto end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == op) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::vector<Builder> builders_of(std::string_view name) {
  std::vector<Builder> found;
  for (const Builder& builder : builders())
    if (builder.name == name) found.push_back(builder);
  return found;
}

std::vector<std::string_view> builders_making(std::string_view op) {
  std::vector<std::string_view> names;
  for (const Builder& builder : builders())
    if (builder.makes(op) && std::find(names.begin(), names.end(), builder.name) == names.end()) names.push_back(builder.name);
  return names;
}

}  // namespace rlx::command
