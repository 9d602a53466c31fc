// Objects of kernels, linked without LLVM.
#include "backends/cpu/linked_kernel.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "backends/cpu/backend.h"
#include "backends/cpu/compiler.h"
#include "formats/temporary_folder.h"

namespace rlx::cpu {
namespace {

#ifdef __x86_64__

/// Fills the second buffer with the first one's first byte by a call of memset, and adds 0.1 to the third; for levels of every CPU.
constexpr std::string_view text = R"(
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal float @tenth(float %x) noinline { %y = fadd float %x, 0x3FB99999A0000000 ret float %y }
define void @kernel(ptr %buffers, ptr %sizes, i64 %begin, i64 %end) nounwind {
  %from = load ptr, ptr %buffers
  %byte = load i8, ptr %from
  %pto = getelementptr ptr, ptr %buffers, i64 1
  %to = load ptr, ptr %pto
  call void @llvm.memset.p0.i64(ptr %to, i8 %byte, i64 %end, i1 false)
  %psum = getelementptr ptr, ptr %buffers, i64 2
  %sum = load ptr, ptr %psum
  %x = load float, ptr %sum
  %y = call float @tenth(float %x)
  store float %y, ptr %sum
  ret void
})";

std::string compiled(std::string_view kernel) { return open_compiler(CpuLevel::portable)->compile({"kernel", std::string(kernel)}); }

LinkedKernel linked(const std::string& object) { return {std::as_bytes(std::span(object)), "kernel"}; }

TEST(LinkedKernel, HasItsConstantsAndCallsTheSystem) {
  const std::string object = compiled(text);
  ASSERT_NE(object.find("memset"), std::string::npos);
  LinkedKernel first = linked(object);
  const LinkedKernel kernel = std::move(first);
  std::array<char, 3> from{'a', 'b', 'c'};
  std::array<char, 200> to{};
  float sum = 1;
  const std::array<void*, 3> buffers{from.data(), to.data(), &sum};
  kernel.function()(buffers.data(), nullptr, 0, 199);
  EXPECT_EQ(std::string(to.begin(), to.end()), std::string(199, 'a') + '\0');
  EXPECT_EQ(sum, 1.0f + 0.1f);
}

TEST(LinkedKernel, CutObjectsAreRefused) {
  const std::string object = compiled(text);
  for (std::size_t bytes = 0; bytes < object.size(); ++bytes) EXPECT_THROW(linked(object.substr(0, bytes)), Error) << bytes;
}

/// Most are refused; what is linked all the same is not run.
TEST(LinkedKernel, ChangedObjectsAreReadWithinTheirBounds) {
  const std::string object = compiled(text);
  int refused = 0;
  for (std::size_t at = 0; at < object.size(); ++at)
    for (const int bits : {0x01, 0x80, 0xff}) {
      std::string changed = object;
      changed[at] = static_cast<char>(changed[at] ^ bits);
      try {
        linked(changed);
      } catch (const Error&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, 100);
}

TEST(LinkedKernel, OtherObjectsAreRefused) {
  std::string object = compiled(text);
  EXPECT_THROW(LinkedKernel(std::as_bytes(std::span(object)), "other"), Error);
  const std::uint16_t arm = EM_AARCH64;
  std::memcpy(object.data() + offsetof(Elf64_Ehdr, e_machine), &arm, sizeof arm);
  EXPECT_EQ(test::error_of([&] { linked(object); }), "kernel object: it is no relocatable ELF object of x86-64");
  EXPECT_THROW(linked(compiled(R"(
declare void @rlx_there_is_no_such_function()
define void @kernel(ptr %buffers, ptr %sizes, i64 %begin, i64 %end) { call void @rlx_there_is_no_such_function() ret void })")),
               Error);
}

/// A variable of its own is what no kernel has.
TEST(LinkedKernel, WhatIsRefusedIsLinkedByLlvm) {
  constexpr std::string_view counts = R"(
@count = internal global i64 40
define void @kernel(ptr %buffers, ptr %sizes, i64 %begin, i64 %end) nounwind {
  %old = load i64, ptr @count
  %new = add i64 %old, %end
  store i64 %new, ptr @count
  %to = load ptr, ptr %buffers
  store i64 %new, ptr %to
  ret void
})";
  EXPECT_THROW(linked(compiled(counts)), Error);
  const auto jit = backend().host_code(target_of(CpuLevel::portable), {.cache_folder = ""}, 1);
  const KernelText kernel{"kernel", std::string(counts)};
  const KernelFunction function = jit->load(std::span(&kernel, 1), {})[0];
  std::int64_t seen = 0;
  void* const buffer = &seen;
  function(&buffer, nullptr, 0, 1);
  function(&buffer, nullptr, 0, 1);
  EXPECT_EQ(seen, 42);
}

#endif

}  // namespace
}  // namespace rlx::cpu
