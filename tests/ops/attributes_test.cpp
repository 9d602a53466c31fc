// What a builder refuses, the text form refuses too: attributes and operands are checked where the node is made.
#include <gtest/gtest.h>

#include "message.h"
#include "rlx/graph.h"
#include "rlx/text.h"

namespace rlx {
namespace attributes_test {

/// The error of a graph of one node over f32 inputs x, q [1,2,3,4], i [3] of i32 and m [5,5] of bool.
std::string error_of(const std::string& node) {
  const std::string text =
      "graph t { %x: f32[3,4] = input {label=\"x\"} %q: f32[1,2,3,4] = input {label=\"q\"} %i: i32[3] = input {label=\"i\"} "
      "%m: bool[5,5] = input {label=\"m\"} %y = " +
      node + " output y = %y.0 }";
  try {
    parse_graph(text, "t");
  } catch (const Error& error) {
    return test::without_place(error.what());
  }
  return "no error";
}
::testing::AssertionResult refused(const std::string& node, const std::string& message) {
  const std::string error = error_of(node);
  if (error.find(message) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << node << ": " << error;
}

TEST(Attributes, AttentionIsCheckedInTheTextToo) {
  EXPECT_EQ(error_of("attention(%q, %q, %q) {softcap=2, window=5, scale=0.5}"), "no error");
  EXPECT_TRUE(refused("attention(%q, %q, %q) {softcap=-2}", "rlx.attention: softcap -2, window 0 (allowed: >= 0)"));
  EXPECT_TRUE(refused("attention(%q, %q, %q) {softcap=nan}", "rlx.attention: softcap nan"));
  EXPECT_TRUE(refused("attention(%q, %q, %q) {window=-5}", "rlx.attention: softcap 0, window -5 (allowed: >= 0)"));
  EXPECT_TRUE(refused("attention(%q, %q, %q) {scale=nan}", "rlx.attention: scale nan (allowed: finite; 0: 1 / sqrt(D))"));
  EXPECT_TRUE(refused("attention(%q, %q, %q, %x) {has_mask=true}", "rlx.attention: the mask is f32[3,4] (allowed: bool, true = keep)"));
  EXPECT_TRUE(refused("attention(%q, %q, %q, %m) {has_mask=true}", "rlx.attention: shapes [5,5] and [1,2,3,3] do not broadcast"));
  EXPECT_TRUE(refused("attention(%q, %q, %q, %m) {has_bias=true}", "rlx.attention: the bias is bool[5,5] (allowed: floats)"));
  EXPECT_TRUE(refused("attention(%q, %q, %q, %x) {has_positions=true}", "rlx.attention: positions f32[3,4] do not fit"));
}

TEST(Attributes, LossesAreCheckedInTheTextToo) {
  EXPECT_EQ(error_of("nll(%x, %i) {axis=1, label_smoothing=0.5}"), "no error");
  EXPECT_TRUE(refused("nll(%x, %i) {axis=1, label_smoothing=1.5}", "label_smoothing 1.5 (allowed: 0..1)"));
  EXPECT_TRUE(refused("nll(%x, %i, %m) {axis=1, has_weight=true}", "rlx.nll: shapes [5,5] and [3,4] do not broadcast"));
  EXPECT_TRUE(refused("cross_entropy_dense(%x, %x) {axis=1, label_smoothing=-1}", "label_smoothing -1 (allowed: 0..1)"));
  EXPECT_TRUE(refused("huber(%x, %x) {delta=0}", "rlx.huber: delta 0 (allowed: > 0)"));
  EXPECT_TRUE(refused("gaussian_nll(%x, %x, %x) {eps=nan}", "rlx.gaussian_nll: eps nan (allowed: > 0)"));
}

TEST(Attributes, OthersAreCheckedInTheTextToo) {
  EXPECT_TRUE(refused("max_pool(%x) {window=[2,2], strides=[2,1]}",
                      "rlx.max_pool: padding has 0 numbers for 2 window lengths (allowed: one for each)"));
  EXPECT_TRUE(refused("axial_rope_2d(%x) {width=3, theta=-1}", "rlx.axial_rope_2d: theta -1 (allowed: > 0)"));
  EXPECT_TRUE(
      refused("resize(%x) {sizes=[7], mode=nearest_exact, align_corners=true}", "rlx.resize: align_corners with mode 'nearest_exact'"));
}

}  // namespace attributes_test
}  // namespace rlx
