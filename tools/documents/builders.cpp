#include "documents/builders.h"

#include <algorithm>

namespace rlx::command {

std::vector<BuilderText> builder_texts(std::string_view name) {
  std::vector<BuilderText> found;
  for (const Builder* builder : builders_of(name)) {
    if (!found.empty() && found.back().comment == builder->comment) found.back().declarations += fmt::format("\n{}", builder->declaration);
    else found.push_back({std::string(builder->declaration), builder->comment});
  }
  return found;
}

std::vector<std::string_view> builders_making(std::string_view op) {
  std::vector<std::string_view> names;
  for (const Builder& builder : builders())
    if (builder.makes(op) && std::find(names.begin(), names.end(), builder.name) == names.end()) names.push_back(builder.name);
  return names;
}

}  // namespace rlx::command
