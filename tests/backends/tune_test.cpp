// Choices about products: they change the time and never the bits.
#include "backends/cpu/gemm/tune.h"

#include <vector>

#include "backends/gemm_cases.h"

namespace rlx::cpu {
namespace tune_test {

template <class T>
class TuneOf : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_micro_kernel<T>(cpu_level())) GTEST_SKIP() << "needs a CPU that multiplies such elements without widening them";
  }
};
using Types = testing::Types<float, double, Bf16, std::int8_t>;
TYPED_TEST_SUITE(TuneOf, Types);

struct Size {
  std::int64_t batch, m, n, k;
};
constexpr Size sizes[] = {{1, 67, 150, 300}, {3, 9, 5, 40}, {1, 130, 7, 33}, {1, 1, 400, 65}, {2, 33, 33, 0}};

template <class T>
struct Operands {
  explicit Operands(const Size& s, const MicroKernel<T>& kernel)
      : a(s.batch, s.m, s.k, Layout::row_major, 1), b(s.batch, s.k, s.n, Layout::column_major, 2) {
    args = {.batch = s.batch, .m = s.m, .n = s.n, .k = s.k, .a = a.matrix, .b = b.matrix, .kernel = &kernel};
  }
  Stored<T> a, b;
  GemmArgs<T> args;
};

/// Choices of every kind, possible ones and others.
std::vector<ProductChoice> some_choices() {
  std::vector<ProductChoice> all;
  for (const bool transposed : {false, true})
    for (const std::int64_t rows : {1, 2, 7})
      for (const std::int64_t columns : {1, 3})
        for (const std::int64_t depth : {16, 64, 512})
          for (const std::int64_t grain : {1, 4, 100}) all.push_back({transposed, {rows, columns, depth, grain}});
  return all;
}

TYPED_TEST(TuneOf, EveryPossibleChoiceGivesTheSameBits) {
  ThreadPool pool(2);
  for (const auto& [name, kernel] : kernels_of<TypeParam>())
    for (const Size& size : sizes) {
      const Operands<TypeParam> operands(size, *kernel);
      const auto wanted = run(operands.args, pool);
      int tried = 0;
      for (const ProductChoice& choice : some_choices()) {
        if (!is_possible(choice, operands.args)) continue;
        GemmArgs<TypeParam> args = operands.args;
        args.choice = &choice;
        ASSERT_EQ(run(args, pool), wanted) << name << " " << to_string(choice, kernel->units(size.k));
        ++tried;
      }
      EXPECT_GE(tried, 3) << name;
    }
}

TYPED_TEST(TuneOf, WhatCannotBeDoneIsNotPossible) {
  for (const auto& [name, kernel] : kernels_of<TypeParam>()) {
    const Operands<TypeParam> operands(sizes[0], *kernel);
    const ProductChoice usual = usual_choice(operands.args, 2);
    EXPECT_TRUE(is_possible(usual, operands.args)) << name;
    for (std::int64_t Blocking::* number : {&Blocking::row_blocks, &Blocking::col_blocks, &Blocking::depth, &Blocking::grain})
      for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40}) {
        if (number == &Blocking::grain && value > 0) continue;  // one thread does everything
        ProductChoice other = usual;
        other.cut.*number = value;
        EXPECT_FALSE(is_possible(other, operands.args)) << name << " " << value;
      }
  }
}

TYPED_TEST(TuneOf, TheFastestIsPossibleAndCallsNoEpilogue) {
  ThreadPool pool(2);
  const MicroKernel<TypeParam>& kernel = *kernels_of<TypeParam>().front().kernel;
  for (const bool by_columns : {false, true}) {
    Operands<TypeParam> operands({2, 20, 50, 64}, kernel);
    int calls = 0;
    operands.args.epilogue = [](void* context, Sum<TypeParam>*, auto...) { ++*static_cast<int*>(context); };
    operands.args.epilogue_context = &calls;
    operands.args.epilogue_by_columns = by_columns;
    EXPECT_TRUE(is_possible(fastest_choice(operands.args, pool), operands.args));
    EXPECT_EQ(calls, 0);
  }
}

}  // namespace tune_test
}  // namespace rlx::cpu
