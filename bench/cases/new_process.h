#pragma once
#include <functional>

#include <nlohmann/json.hpp>

namespace rlx::bench {

/// What `work` gives in a process of its own, where nothing is loaded yet. Throws Error with its message where it throws, and where it
/// takes longer than `most_seconds` (0: as long as it likes).
nlohmann::json in_new_process(const std::function<nlohmann::json()>& work, unsigned most_seconds = 0);

}  // namespace rlx::bench
