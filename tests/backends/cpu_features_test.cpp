#include "backends/cpu/machine/cpu_features.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <string>

#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

TEST(CpuLevel, ObeysTheWordAndNamesWhatIsAllowed) {
  CpuFeatures features;
  EXPECT_EQ(choose_level(features, std::nullopt), CpuLevel::portable);
  features.avx2 = features.fma = true;
  EXPECT_EQ(choose_level(features, std::nullopt), CpuLevel::avx2);
  EXPECT_EQ(choose_level(features, "portable"), CpuLevel::portable);
  for (const char* word : {"avx512", "AVX2", "sse", ""}) {
    try {
      choose_level(features, word);
      ADD_FAILURE() << word;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("allowed: portable, avx2)"), std::string::npos) << error.what();
    }
  }
  features.avx512f = features.avx512bw = features.avx512dq = true;
  EXPECT_EQ(best_level(features), CpuLevel::avx2);
  features.avx512vl = true;
  EXPECT_EQ(best_level(features), CpuLevel::avx512);
}

CpuFeatures with_amx(bool allowed) {
  CpuFeatures features{.name = "a CPU"};
  features.avx2 = features.fma = true;
  features.avx512f = features.avx512bw = features.avx512dq = features.avx512vl = true;
  features.amx_tile = features.amx_bf16 = features.amx_int8 = true;
  features.tiles_allowed = allowed;
  return features;
}

std::string message_of_word(const CpuFeatures& features, std::string_view word) {
  try {
    choose_level(features, word);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CpuLevel, IsAmxWhereTheSystemAllowsTiles) {
  const CpuFeatures features = with_amx(true);
  EXPECT_EQ(choose_level(features, std::nullopt), CpuLevel::amx);
  EXPECT_EQ(choose_level(features, "amx"), CpuLevel::amx);
  EXPECT_EQ(choose_level(features, "avx512"), CpuLevel::avx512);
  EXPECT_EQ(describe(features, CpuLevel::amx).substr(0, 11), "a CPU, amx ");
  EXPECT_EQ(describe(features, CpuLevel::avx512).substr(0, 42), "a CPU, avx512 (RLX_CPU; the best is amx) a");
  for (auto instructions : {&CpuFeatures::amx_tile, &CpuFeatures::amx_bf16, &CpuFeatures::amx_int8, &CpuFeatures::avx512bw}) {
    CpuFeatures without = features;
    without.*instructions = false;
    EXPECT_LT(best_level(without), CpuLevel::amx);
    EXPECT_NE(message_of_word(without, "amx").find("'amx' is not a level of this CPU, a CPU (allowed: portable"), std::string::npos);
  }
}

TEST(CpuLevel, SaysThatTheSystemRefusesTiles) {
  const CpuFeatures features = with_amx(false);
  EXPECT_EQ(choose_level(features, std::nullopt), CpuLevel::avx512);
  EXPECT_NE(describe(features, CpuLevel::avx512).find("avx512 (the system refuses AMX's tile registers) amx_bf16"), std::string::npos)
      << describe(features, CpuLevel::avx512);
  const std::string message = message_of_word(features, "amx");
  EXPECT_NE(message.find("Linux 5.16"), std::string::npos) << message;
  EXPECT_NE(message.find(": portable, avx2, avx512)"), std::string::npos) << message;
  EXPECT_NE(message_of_word(features, "amx2").find("is not a level of this CPU"), std::string::npos);
}

TEST(CpuLevel, IsOfOneArchitecture) {
  CpuFeatures arm;
  arm.neon = true;
  EXPECT_EQ(allowed_levels(arm), (std::vector{CpuLevel::portable, CpuLevel::neon}));
  EXPECT_EQ(choose_level(arm, std::nullopt), CpuLevel::neon);
  EXPECT_EQ(choose_level(arm, "neon"), CpuLevel::neon);
  EXPECT_THROW(choose_level(arm, "avx2"), Error);
  CpuFeatures x86;
  x86.avx2 = x86.fma = true;
  EXPECT_EQ(allowed_levels(x86), (std::vector{CpuLevel::portable, CpuLevel::avx2}));
  EXPECT_THROW(choose_level(x86, "neon"), Error);
  EXPECT_EQ(allowed_levels(with_amx(true)), (std::vector{CpuLevel::portable, CpuLevel::avx2, CpuLevel::avx512, CpuLevel::amx}));
}

/// Narrow elements need instructions that not every CPU of a level has.
TEST(CpuLevel, HasTheKernelsOfTheEmulatedCpu) {
  const char* const cpu = std::getenv("QEMU_CPU");
  if (!cpu) GTEST_SKIP() << "needs qemu-user, which emulates the CPU that the variable QEMU_CPU names";
  const bool all = std::string_view(cpu) == "max";
  ASSERT_TRUE(all || std::string_view(cpu) == "cortex-a72") << cpu;
  EXPECT_EQ(best_level(cpu_features()), CpuLevel::neon);
  EXPECT_TRUE(has_micro_kernel<float>(CpuLevel::neon));
  EXPECT_EQ(&micro_kernel<std::int8_t>(CpuLevel::neon) != &micro_kernel<std::int8_t>(CpuLevel::portable), all);
  EXPECT_EQ(has_micro_kernel<Bf16>(CpuLevel::neon), all);
  EXPECT_EQ(cpu_features().neon_i8mm, all);
}

TEST(CpuLevel, DetectsPlausibleCaches) {
  const CpuFeatures& features = cpu_features();
  EXPECT_GE(features.l1_bytes, 8 << 10);
  EXPECT_GE(features.l2_bytes, features.l1_bytes);
  EXPECT_FALSE(describe(features, cpu_level()).empty());
}

/// Of ARM's the system says what it likes.
#ifdef __x86_64__
TEST(CpuIdentity, IsThatOfEveryCore) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const std::string identity = cpu_identity();
  EXPECT_GT(identity.size(), 40u);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &before)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(cpu_identity(), identity) << "core " << core;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}
#endif

}  // namespace
}  // namespace rlx::cpu
