#include "models/families/layer_name.h"

#include <gtest/gtest.h>

namespace rlx {
namespace {

TEST(LayerName, IsTakenApart) {
  const auto name = layer_name("model.layers.07.mlp.up.weight", "model.layers");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->layer, 7);
  EXPECT_EQ(name->number, "07");
  EXPECT_EQ(name->rest, "mlp.up.weight");
}

TEST(LayerName, OtherNamesHaveNone) {
  for (const char* name : {"", "layers", "layers.", "layers.3", "layers.x.q", "layers..q", "layers.-1.q", "layers.3x.q", "mylayers.3.q",
                           "layers3.q", "layers.99999999999999999999.q"})
    EXPECT_FALSE(layer_name(name, "layers")) << name;
}

TEST(LayerName, OfGgufFilesMayStandBehindAPart) {
  EXPECT_EQ(gguf_layer("blk.12.attn_q.weight"), 12);
  EXPECT_EQ(gguf_layer("enc.blk.3.attn_q.weight"), 3);
  for (const char* name : {"output.weight", "blk.", "blk.q.weight", "blk.99999999999999999999.q"}) EXPECT_FALSE(gguf_layer(name)) << name;
}

}  // namespace
}  // namespace rlx
