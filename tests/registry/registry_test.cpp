// The builders by name: they make the same graphs as the functions, and errors name the caller's line.
#include "rlx/registry.h"

#include <gtest/gtest.h>

#include "ir/op.h"
#include "message.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

class RegistryTest : public testing::Test {
 protected:
  Graph g_;
  Value x_ = g_.input("x", {2, 3}, f32);
  Value q_ = g_.input("q", {1, 4, 8, 16}, f32);
};

TEST_F(RegistryTest, EveryOpThatABuilderMakesIsKnown) {
  for (const Builder& builder : builders()) {
    EXPECT_FALSE(builder.group.empty()) << builder.name;
    EXPECT_FALSE(builder.comment.empty()) << builder.name;
    for (const auto& [name, op] : op_registry()) EXPECT_TRUE(builder.name != name || builder.call) << name;
  }
}

TEST_F(RegistryTest, GivesWhatTheFunctionGives) {
  EXPECT_EQ(apply("softmax", {x_})[0], softmax(x_));
  EXPECT_EQ(apply("softmax", {x_, std::int64_t{0}})[0], softmax(x_, 0));
  EXPECT_EQ(apply("softmax", {x_}, {{"zero_empty", true}})[0], softmax(x_, -1, true));
  EXPECT_EQ(apply("sum", {x_, std::vector<std::int64_t>{0, 1}})[0], sum(x_, {0, 1}));
  EXPECT_EQ(apply("reshape", {x_, std::vector<std::int64_t>{3, -1}})[0], reshape(x_, {3, -1}));
  EXPECT_EQ(apply("concat", {Values{x_, x_}, std::int64_t{1}})[0], concat({x_, x_}, 1));
  EXPECT_EQ(apply("top_k", {x_, std::int64_t{2}}), top_k(x_, 2));
  EXPECT_EQ(apply("cast", {x_, i32})[0], cast(x_, i32));
  EXPECT_EQ(apply("nan_to_num", {x_})[0], nan_to_num(x_));
}

TEST_F(RegistryTest, OptionsAreNamedArguments) {
  const Value mask = g_.input("mask", {8, 8}, boolean);
  EXPECT_EQ(apply("attention", {q_, q_, q_}, {{"causal", true}, {"mask", mask}, {"scale", 0.5}})[0],
            attention(q_, q_, q_, {.scale = 0.5, .causal = true, .mask = mask}));
  EXPECT_EQ(apply("mse", {x_, x_}, {{"reduction", std::string("none")}})[0], mse(x_, x_, Reduction::none));
}

TEST_F(RegistryTest, OverloadsAreChosenByWhatIsGiven) {
  EXPECT_EQ(apply("clamp", {x_, 0.0, 1.0})[0], clamp(x_, 0.0, 1.0));
  EXPECT_EQ(apply("clamp", {x_, x_, x_})[0], clamp(x_, x_, x_));
  EXPECT_EQ(apply("lt", {0.5, x_})[0], lt(0.5, x_));
}

TEST_F(RegistryTest, FunctionsAreCalledWithGroupsOfValues) {
  const GroupFunction step = [](const std::vector<Values>& groups) {
    const Value next = groups[0][0] + groups[1][0];
    return std::vector<Values>{{next}, {next}};
  };
  const Value first = g_.input("first", {3}, f32);
  const Values results = apply("scan", {step, Values{first}, Values{x_}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].type().to_string(), "f32[2,3]");
}

TEST_F(RegistryTest, ErrorsNameTheFunctionTheArgumentAndWhatIsAllowed) {
  EXPECT_EQ(test::whole_error_of([&] { apply("softmaks", {x_}); }).rfind("rlx.softmaks: there is no such function (near: 'softmax'", 0),
            0u);
  EXPECT_NE(test::whole_error_of([&] { apply("softmax", {}); }).find("rlx.softmax: argument 'x' is missing (allowed: an array)"),
            std::string::npos);
  EXPECT_NE(test::whole_error_of([&] {
              apply("softmax", {x_}, {{"axes", std::int64_t{1}}});
            }).find("no argument 'axes' (allowed: x, axis, zero_empty)"),
            std::string::npos);
  EXPECT_NE(test::whole_error_of([&] { apply("softmax", {x_, 0.5}); }).find("argument 'axis' is a number (allowed: an integer)"),
            std::string::npos);
  EXPECT_NE(test::whole_error_of([&] { apply("softmax", {x_}, {{"x", x_}}); }).find("argument 'x' is given twice"), std::string::npos);
  EXPECT_NE(test::whole_error_of([&] {
              apply("mse", {x_, x_, std::string("avg")});
            }).find("argument 'reduction' is 'avg' (allowed: none, mean, sum)"),
            std::string::npos);
}

TEST_F(RegistryTest, ErrorsNameTheLineOfTheCallOrThePlaceThatIsSet) {
  EXPECT_NE(test::whole_error_of([&] { apply("softmax", {x_, std::int64_t{2}}); }).find("registry_test.cpp:"), std::string::npos);
  const Place place({"model.py", 12});
  EXPECT_EQ(test::whole_error_of([&] { apply("matmul", {x_, x_}); }).find("rlx.matmul: "), 0u);
  const std::string message = test::whole_error_of([&] { apply("softmax", {x_, std::int64_t{2}}); });
  EXPECT_TRUE(message.ends_with(", built at model.py:12")) << message;
  EXPECT_EQ(message.find("registry_test.cpp"), std::string::npos) << message;
}

}  // namespace
}  // namespace rlx
