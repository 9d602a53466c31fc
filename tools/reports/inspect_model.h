#pragma once
#include <string>
#include <string_view>

#include "rlx/model_file.h"

namespace rlx::command {

struct ModelView {
  bool json = false;
  bool all = false;      ///< long arrays and texts of the metadata as a whole
  bool tensors = false;  ///< one line a tensor
};

void inspect_model(const ModelFile& file, const ModelView& view);

/// Text from outside: what would move the cursor is escaped.
std::string printable(std::string_view text);

}  // namespace rlx::command
