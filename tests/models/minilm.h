#pragma once

namespace rlx::test {

/// What a test says that needs the real model where the environment does not say in which folder it is.
inline constexpr const char* without_minilm =
    "needs the model all-MiniLM-L6-v2, but RLX_MINILM is not set: run `scripts/fetch_minilm.sh build/minilm`, then "
    "`RLX_MINILM=$PWD/build/minilm ctest --preset release` (`make test` does both)";

}  // namespace rlx::test
