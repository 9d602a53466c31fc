// Memory of an OpenCL device: its addresses, what is kept of it, and what is refused.
#include "backends/opencl_device.h"

#include <numeric>

namespace rlx::test {
namespace opencl_memory_test {

using OpenClMemory = OpenClTest;

std::vector<float> counted(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_F(OpenClMemory, GivesBackWhatWasWritten) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
    const auto values = counted(count, 3);
    EXPECT_EQ(downloaded(uploaded(values).get(), count), values);
  }
}

TEST_F(OpenClMemory, WorkIsTimedByItsOwnClock) { expect_own_clock(); }

TEST_F(OpenClMemory, AddressesCountOnInside) {
  const auto bytes = uploaded(counted(100));
  const std::vector<float> two{-1, -2};
  memory().upload(bytes.get() + 40, std::as_bytes(std::span(two)));
  memory().copy(bytes.get() + 200, bytes.get() + 36, 12);
  memory().clear(bytes.get() + 60, 8);
  auto expected = counted(100);
  expected[10] = -1, expected[11] = -2, expected[50] = 9, expected[51] = -1, expected[52] = -2, expected[15] = expected[16] = 0;
  EXPECT_EQ(downloaded(bytes.get(), 100), expected);
  EXPECT_EQ(downloaded(bytes.get() + 36, 3), (std::vector<float>{9, -1, -2}));
}

TEST_F(OpenClMemory, ClearsAnyRangeOfBytes) {
  std::vector<std::byte> ones(300, std::byte{1});
  for (const int begin : {0, 1, 2, 4, 128, 131})
    for (const int size : {1, 2, 3, 16, 128, 131}) {
      const auto bytes = memory().allocate(300);
      memory().upload(bytes.get(), ones);
      memory().clear(bytes.get() + begin, size);
      std::vector<std::byte> seen(300);
      memory().download(seen, bytes.get());
      for (int i = 0; i < 300; ++i)
        ASSERT_EQ(seen[static_cast<std::size_t>(i)], std::byte{i < begin || i >= begin + size}) << begin << ' ' << size << ' ' << i;
    }
}

TEST_F(OpenClMemory, NoBytesHaveAnAddressToo) {
  const auto a = memory().allocate(0), b = memory().allocate(0), c = uploaded(counted(2));
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a.get(), b.get());
  memory().upload(a.get(), {});
  memory().copy(a.get(), b.get(), 0);
  memory().copy(c.get() + 8, a.get(), 0);
  memory().clear(c.get() + 8, 0);
  memory().download({}, a.get());
  EXPECT_EQ(downloaded(c.get(), 2), counted(2));
}

TEST_F(OpenClMemory, WhatIsUploadedMayChangeAtOnce) {
  const auto bytes = memory().allocate(4 * 200 * 64);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> values(64, static_cast<float>(i));
    memory().upload(bytes.get() + i * 256, std::as_bytes(std::span(values)));
    values.assign(64, -1);
  }
  const auto seen = downloaded(bytes.get(), 200 * 64);
  for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], static_cast<float>(i / 64));
}

TEST_F(OpenClMemory, WhatIsLetGoServesWhoAsksNext) {
  const std::byte* const first = memory().allocate(1 << 20).get();
  EXPECT_EQ(memory().allocate((1 << 20) - 1000).get(), first) << "a little smaller";
  EXPECT_NE(memory().allocate(1 << 19).get(), first) << "half would be wasted";
  EXPECT_NE(memory().allocate((1 << 20) + 1000).get(), first);
}

TEST_F(OpenClMemory, AsksForMoreThanThereIsAreRefusedAndHarmless) {
  const auto before = uploaded(counted(10));
  const std::string error = error_of([&] { memory().allocate(std::int64_t{1} << 50); });
  EXPECT_TRUE(error.starts_with(backend().name() + " (")) << error;
  for (const char* part : {"no memory for 1024.0 TiB", "CL_INVALID_BUFFER_SIZE (-61)", "its largest buffer has", "are taken"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  // One buffer after the other, none of which is touched, until all are taken.
  std::vector<std::shared_ptr<std::byte>> taken;
  const std::string full = error_of([&] {
    while (taken.size() < 4096) taken.push_back(memory().allocate(std::int64_t{1} << 30));
  });
  EXPECT_NE(full.find("no memory for 1.0 GiB"), std::string::npos) << full;
  taken.clear();
  EXPECT_EQ(downloaded(before.get(), 10), counted(10));
  EXPECT_EQ(downloaded(uploaded(counted(10)).get(), 10), counted(10));
}

TEST_F(OpenClMemory, ALittleDeviceKeepsNothingThatIsAskedFor) {
  const auto little = first_device_with([](opencl::DeviceFacts& facts) {
    facts.largest_buffer = 1 << 20;
    facts.memory = 16 << 20;
  });
  DeviceMemory& its = *little->memory();
  EXPECT_NE(error_of([&] { its.allocate((1 << 20) + 1); }).find("its largest buffer has 1.0 MiB; 0 bytes of 16.0 MiB are taken"),
            std::string::npos);
  its.allocate(1 << 20);  // is kept
  std::vector<std::shared_ptr<std::byte>> all;
  for (int i = 0; i < 32; ++i) all.push_back(its.allocate(512 << 10));
  EXPECT_NE(error_of([&] { its.allocate(1); }).find("16.0 MiB of 16.0 MiB are taken"), std::string::npos);
  all.pop_back();
  EXPECT_NE(its.allocate(512 << 10), nullptr);
}

TEST_F(OpenClMemory, ALostDeviceIsNamed) {
  const auto lost = with_driver([](opencl::Driver& driver) {
    driver.Finish = [](cl_command_queue) -> cl_int { return CL_DEVICE_NOT_AVAILABLE; };
    driver.EnqueueReadBuffer = [](cl_command_queue, cl_mem, cl_bool, size_t, size_t, void*, cl_uint, const cl_event*, cl_event*) -> cl_int {
      return CL_OUT_OF_RESOURCES;
    };
  });
  EXPECT_NE(error_of([&] { lost->memory()->finish(); }).find("waiting for it: CL_DEVICE_NOT_AVAILABLE (-2)"), std::string::npos);
  const auto bytes = lost->memory()->allocate(4);
  std::vector<std::byte> to(4);
  EXPECT_NE(error_of([&] { lost->memory()->download(to, bytes.get()); }).find("reading 4 bytes: CL_OUT_OF_RESOURCES (-5)"),
            std::string::npos);
}

decltype(&clCreateContext) real_create_context;
void(CL_CALLBACK* report)(const char* text, const void* details, size_t bytes, void* to);
void* report_to;

TEST_F(OpenClMemory, WhatADriverReportsOfWorkUnderWayIsAnError) {
  const auto backend = with_driver([](opencl::Driver& driver) {
    real_create_context = driver.CreateContext;
    driver.CreateContext = [](const cl_context_properties* properties, cl_uint count, const cl_device_id* devices, auto notify, void* to,
                              cl_int* code) {
      report = notify;
      report_to = to;
      return real_create_context(properties, count, devices, notify, to, code);
    };
  });
  DeviceMemory& its = *backend->memory();
  const auto bytes = its.allocate(4);
  std::vector<std::byte> to(4);
  report("an address fault", nullptr, 0, report_to);
  EXPECT_NE(error_of([&] { its.download(to, bytes.get()); }).find("the driver reports: an address fault"), std::string::npos);
  its.finish();  // said once
}

TEST_F(OpenClMemory, OfTheHostIsReadWhereItLies) {
  auto values = std::make_shared<std::vector<float>>(counted(1 << 16));
  std::weak_ptr<const void> alive = values;
  auto there = memory().wrap(std::as_bytes(std::span(*values)), values);
  if (!there) GTEST_SKIP() << "the device has memory of its own";
  (*values)[5] = -1;
  EXPECT_EQ(downloaded(there.get(), 8), (std::vector<float>{0, 1, 2, 3, 4, -1, 6, 7}));
  const KernelText text = affine_kernel(7);
  const auto kernels = memory().load({&text, 1}, {});
  const auto result = memory().allocate(16);
  kernels->launch(0, std::vector<std::byte*>{there.get() + 16, result.get()}, std::vector<std::int64_t>{2}, 4);
  values.reset();
  there.reset();
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(downloaded(result.get(), 4), (std::vector<float>{15, 5, 19, 21})) << "it was read before it was let go";
}

TEST_F(OpenClMemory, APlaceThatNoBufferHoldsIsAFaultOfOurs) {
  const auto bytes = memory().allocate(256);
  const auto on_host = counted(4);
  EXPECT_THROW(downloaded(reinterpret_cast<const std::byte*>(on_host.data()), 1), InternalError);
  EXPECT_THROW(downloaded(bytes.get() + 252, 2), InternalError) << "it ends before";
  EXPECT_THROW(memory().copy(bytes.get(), bytes.get() + 255, 2), InternalError);
}

}  // namespace opencl_memory_test
}  // namespace rlx::test
