// Random numbers in packages of CoreML: Philox with the bits of the CPU, or bits that the host gives.
#include "coreml/packages.h"
#include "ir/reference.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

Array key_of(std::uint32_t low, std::uint32_t high) {
  Array key(u32, {2});
  key.set_int(0, low);
  key.set_int(1, high);
  return key;
}

Graph random_numbers() {
  Graph graph;
  Value key = graph.input("key", {2}, u32);
  graph.output("bits", random_bits(key, {3, 7}));
  graph.output("uniform", random_uniform(key, {3, 7}));
  Value bits = random_bits(key, {3, 7});
  graph.output("half", cast(shr(bits, scalar(bits, 1, u32)), f32));
  return graph;
}

Array bits_of(const Array& key) {
  Graph graph;
  graph.output("bits", random_bits(graph.input("key", {2}, u32), {3, 7}));
  return evaluate(graph, {{"key", key}})[0];
}

TEST(CoreMlRandom, BitsAreThoseOfTheCpu) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  Package computed{"computed", {random_numbers(), {}}, {}, {.computes_random_bits = true}, 0};
  Package given{"given", {random_numbers(), {}}, {}, {}, 0};
  for (const Array& key : {key_of(0, 0), key_of(17, 4000000000U), key_of(0xFFFFFFFF, 0xFFFFFFFF)}) {
    computed.runs.push_back({{"key", key}});
    given.runs.push_back({{"key", key}, {"random_bits_0", bits_of(key)}});
  }
  Graph open;
  open.output("bits", random_bits(open.input("key", {2}, u32), {open.input("x", {Dim::symbol("N", 9)}, f32).shape()[0], 3}));
  const Package sizes{"sizes", {open, {}}, {{{"key", key_of(1, 2)}, {"x", Array(f32, {5})}}}, {.computes_random_bits = true}};
  expect_numbers_of_cpu({computed, given, sizes});
}

}  // namespace
}  // namespace rlx::test
