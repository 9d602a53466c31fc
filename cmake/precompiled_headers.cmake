# The headers that nearly every file includes are compiled once: reading them again in each file took a third of a clean build.
set(common_headers <algorithm> <functional> <map> <memory> <optional> <set> <span> <string> <vector> <fmt/format.h> <fmt/ranges.h>)
target_precompile_headers(rlx PRIVATE ${common_headers} "${PROJECT_SOURCE_DIR}/src/ir/op.h")
# What other instruction sets are allowed in cannot take headers that were compiled without them.
set_source_files_properties(${variant_sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
