#pragma once
#include <gtest/gtest.h>

#include "fixture.h"
#include "models/run/recorded_run.h"

namespace rlx::test {

/// Models of several families have the recorded outputs and tokens.
inline void expect_recorded_models(const Session& session) {
  for (const char* name : {"hf/llama", "hf/mixtral", "hf/qwen3_next", "hf/mamba", "hf/bert", "hf/t5"}) {
    SCOPED_TRACE(name);
    const auto verified = verify_folder(fixture(name), session);
    EXPECT_FALSE(verified.empty());
    for (const VerifiedTensor& t : verified) EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
  }
}

}  // namespace rlx::test
