#pragma once
#include <fmt/format.h>

#include "fixture.h"
#include "formats/gguf/gguf.h"

namespace rlx::test {

inline GgufFile open_fixture(std::string_view name) { return GgufFile::open(fixture(fmt::format("gguf/{}", name))); }

}  // namespace rlx::test
