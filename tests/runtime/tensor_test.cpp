#include "rlx/tensor.h"

#include <gtest/gtest.h>

#include "rlx/ops.h"

namespace rlx {
namespace tensor_test {

const Session& session() {
  static const Session one(Device::cpu(), {.threads = 2, .cache_folder = ""});
  return one;
}

Tensor vector_of(std::vector<float> values) { return Tensor(Array::of<float>({static_cast<std::int64_t>(values.size())}, values)); }

std::vector<float> read(const Tensor& t) {
  const Array array = t.read(session());
  const auto values = array.values<float>();
  return {values.begin(), values.end()};
}

TEST(Tensor, ComputesAWholeExpressionWhenItIsRead) {
  const Tensor a = vector_of({1, 2, 3}), b = vector_of({4, 5, 6});
  EXPECT_EQ(read((a + b) * a - b / b), (std::vector<float>{4, 13, 26}));
}

TEST(Tensor, TakesAnyBuilder) {
  const Tensor x(Array::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4}));
  const Tensor y = Tensor::of([](const Values& v) { return sum(matmul(v[0], v[0]), {1}); }, {x});
  EXPECT_EQ(read(y), (std::vector<float>{17, 37}));
}

TEST(Tensor, IsComputedOnce) {
  const Tensor a = vector_of({1, 2}), b = a + a;
  EXPECT_EQ(b.read(session()).bytes().data(), b.read(session()).bytes().data());
  EXPECT_EQ(read(b * b), (std::vector<float>{4, 16}));
}

TEST(Tensor, DeepExpressionsNeedNoDeepStack) {
  const Tensor one = vector_of({1});
  Tensor total = one;
  for (int i = 0; i < 2000; ++i) total = total + one;
  EXPECT_EQ(read(total), (std::vector<float>{2001}));
}

TEST(Tensor, DeepExpressionsThatNobodyReadsNeedNoDeepStack) {
  Tensor total = vector_of({1});
  for (int i = 0; i < 300000; ++i) total = total + total;
}

TEST(Tensor, BuildersOfSeveralResultsGiveATensorForEach) {
  const std::vector<Tensor> top = Tensor::all([](const Values& v) { return top_k(v[0], 2); }, {vector_of({1, 3, 2})});
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(read(top[0]), (std::vector<float>{3, 2}));
  EXPECT_EQ(top[1].type().to_string(), "i32[2]");
}

TEST(Tensor, ExpressionsOfOneStructureAreCompiledOnce) {
  GraphCache cache(session(), 2);
  const Tensor a = vector_of({1, 2}), b = vector_of({3, 5});
  EXPECT_EQ((a * b + a).read(cache), Array::of<float>({2}, std::vector<float>{4, 12}));
  const std::int64_t compiled = cache.session().counters().kernels_compiled;
  EXPECT_EQ((b * a + b).read(cache), Array::of<float>({2}, std::vector<float>{6, 15}));
  EXPECT_EQ(cache.session().counters().kernels_compiled, compiled);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ((a + static_cast<double>(i)).read(cache),
              Array::of<float>({2}, std::vector{1.0F + static_cast<float>(i), 2.0F + static_cast<float>(i)}));
  EXPECT_THROW(GraphCache(session(), 0), Error);
}

TEST(Tensor, OperationsBuildNothingAgain) {
  int built = 0;
  const auto build = [&built](const Values& v) { return ++built, Values{v[0] * v[1], v[0] - v[1]}; };
  const Tensor a = vector_of({1, 2}), b = vector_of({3, 5});
  const Tensor::Operation both(build, {a.type(), b.type()});
  EXPECT_EQ(built, 1);
  EXPECT_EQ(both({a, b})[1].read(), Array::of<float>({2}, std::vector<float>{-2, -3}));
  const int compiled = built;
  EXPECT_EQ(both({b, a})[1].read(), Array::of<float>({2}, std::vector<float>{2, 3}));
  EXPECT_EQ(built, compiled);
  EXPECT_EQ(both({a, b})[0].read(), Array::of<float>({2}, std::vector<float>{3, 10}));       // another result
  EXPECT_EQ((both({a, a})[1] + a).read(), Array::of<float>({2}, std::vector<float>{1, 2}));  // and other operands
  EXPECT_THROW(Tensor::Operation(build, {a.type(), vector_of({1, 2, 3}).type()}), Error);
}

TEST(Tensor, IsKnownOnceItIsRead) {
  const Tensor sum = vector_of({1}) + vector_of({2});
  EXPECT_FALSE(sum.known());
  const Array value = sum.read(session());
  EXPECT_EQ(sum.known(), value);
}

TEST(Tensor, LargeResultsTakeTheMemoryOfThoseThatAreGone) {
  constexpr std::int64_t size = 1 << 20;
  const Tensor a(Array::of<float>({size}, std::vector<float>(size, 1.0F)));
  const auto at = [](const Tensor& t) { return t.read().bytes().data(); };
  const Tensor kept = a + 1;
  const std::byte* const first = at(kept);
  const std::byte* second = nullptr;
  {
    const Tensor gone = a + 2;
    second = at(gone);
    EXPECT_NE(second, first);
  }
  const Tensor next = a + 3;
  EXPECT_EQ(at(next), second);
  const Array last = next.read(), before = kept.read();
  EXPECT_EQ(last.values<float>()[size - 1], 4);
  EXPECT_EQ(before.values<float>()[size - 1], 2);
}

TEST(Tensor, TakesNumbers) {
  const Tensor a = vector_of({1, 2, 4});
  EXPECT_EQ(read(1 - (2 * a + 1) / 2.0), (std::vector<float>{-0.5, -1.5, -3.5}));
  EXPECT_EQ(read(-(8 / a) - 1 + (3 + a * 2)), (std::vector<float>{-4, 2, 8}));
}

TEST(Tensor, RefusesAWrongShapeWhereItIsWritten) { EXPECT_THROW(vector_of({1, 2}) + vector_of({1, 2, 3}), Error); }

}  // namespace tensor_test
}  // namespace rlx
