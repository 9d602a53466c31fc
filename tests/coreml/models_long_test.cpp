// Whole models as packages of CoreML: images, sequences and texts have the numbers of the CPU.
#include "coreml/packages.h"
#include "fixture.h"
#include "rlx/ops.h"
#include "rlx/sentence_encoder.h"

namespace rlx::test {
namespace {

/// A graph whose parameters have values that differ, small enough that layers keep the size of what they read.
class Network {
 public:
  Graph graph;

  Value weight(Dims shape, double scale = 0.3) {
    const std::string name = fmt::format("w{}", weights_.size());
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : shape) sizes.push_back(dim.value());
    Array array = floats_like_noise(std::move(sizes), static_cast<std::uint32_t>(weights_.size() + 7));
    for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, array.get_double(i) * scale);
    weights_.emplace(name, std::move(array));
    return graph.param(name, std::move(shape), f32);
  }
  Value layer(Value x, std::int64_t from, std::int64_t to) { return linear(x, weight({to, from}), weight({to})); }
  Value norm(Value x, std::int64_t width) { return layer_norm(x, weight({width}) + 1, weight({width})); }
  Package package(std::string name, std::vector<NamedArrays> runs, double bound = 1e-5) const {
    return {std::move(name), {graph, weights_}, std::move(runs), {}, bound};
  }

 private:
  NamedArrays weights_;
};

std::vector<NamedArrays> images(const std::vector<std::int64_t>& counts, std::int64_t size) {
  std::vector<NamedArrays> runs;
  for (const std::int64_t count : counts) runs.push_back({{"image", floats_like_noise({count, 3, size, size})}});
  return runs;
}

Value convolved(Network& net, Value x, std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t stride) {
  Value y = conv(x, net.weight({to, from, kernel, kernel}), {stride}, {kernel / 2});
  return batch_norm(y, net.weight({to}), abs(net.weight({to})) + 1, net.weight({to}) + 1, net.weight({to}));
}

/// A residual network, as torchvision's are.
Package residual_network() {
  Network net;
  Value x = net.graph.input("image", {Dim::symbol("B", 4), 3, 32, 32}, f32);
  x = max_pool(relu(convolved(net, x, 3, 8, 7, 2)), {3, 3}, {2, 2}, {1, 1});
  for (const std::int64_t stride : {1, 2}) {
    const std::int64_t from = x.shape()[1].value(), to = from * stride;
    Value y = convolved(net, relu(convolved(net, x, from, to, 3, stride)), to, to, 3, 1);
    x = relu(y + (stride == 1 ? x : convolved(net, x, from, to, 1, stride)));
  }
  net.graph.output("classes", softmax(net.layer(mean(x, {2, 3}), 16, 10)));
  return net.package("resnet", images({1, 3}, 32));
}

/// Windows of images, with what CoreML's pooling does not have.
Package pools() {
  Network net;
  Value x = net.graph.input("image", {Dim::symbol("B", 4), 3, 9, 10}, f32);
  net.graph.output("max", max_pool(x, {3, 2}, {2, 1}, {1, 1}));
  net.graph.output("mean", avg_pool(x, {3, 2}, {2, 1}, {1, 1}));
  net.graph.output("mean_inside", avg_pool(x, {3, 2}, {2, 1}, {1, 1}, false, false));
  net.graph.output("mean_up", avg_pool(x, {3, 3}, {2, 2}, {1, 1}, true, false));
  net.graph.output("dilated", max_pool(x, {3, 2}, {1, 1}, {1, 1}, {2, 1}));
  net.graph.output("sum", sum_pool(x, {2, 3}));
  net.graph.output("product", prod_pool(x, {2, 3}));
  std::vector<NamedArrays> runs;
  for (const std::int64_t count : {1, 3}) runs.push_back({{"image", floats_like_noise({count, 3, 9, 10})}});
  return net.package("pools", std::move(runs));
}

/// Patches of 8 x 8 pixels, and a word for the whole before them.
Package vision_transformer() {
  Network net;
  const Dim batch = Dim::symbol("B", 4);
  Value image = net.graph.input("image", {batch, 3, 32, 32}, f32);
  Value patches = transpose(reshape(conv(image, net.weight({16, 3, 8, 8}, 0.1), {8}), {batch, 16, 16}), {0, 2, 1});
  Value x = concat({broadcast_to(net.weight({1, 1, 16}), {batch, 1, 16}), patches}, 1) + net.weight({1, 17, 16});
  for (int layer = 0; layer < 2; ++layer) {
    Value y = net.norm(x, 16);
    const auto heads = [&] { return transpose(reshape(net.layer(y, 16, 16), {batch, 17, 2, 8}), {0, 2, 1, 3}); };
    Value q = heads(), k = heads(), v = heads();
    x = x + net.layer(reshape(transpose(attention(q, k, v), {0, 2, 1, 3}), {batch, 17, 16}), 16, 16);
    x = x + net.layer(gelu(net.layer(net.norm(x, 16), 16, 32)), 32, 16);
  }
  net.graph.output("classes", net.layer(reshape(slice_axis(net.norm(x, 16), 1, 0, 1), {batch, 16}), 16, 10));
  return net.package("vit", images({1, 3}, 32));
}

/// Sequences of any length, both ways through two layers, and then through gated units.
Package recurrent_network() {
  Network net;
  Value x = net.graph.input("steps", {Dim::symbol("B", 4), Dim::symbol("S", 16), 5}, f32);
  Values weights;
  for (const std::int64_t from : {5, 5, 12, 12}) {
    for (const Dims& shape : {Dims{24, from}, Dims{24, 6}, Dims{24}, Dims{24}}) weights.push_back(net.weight(shape));
  }
  const Values both = lstm(x, weights, true);
  const Values last = gru(both[0], {net.weight({12, 12}), net.weight({12, 4})});
  net.graph.output("states", both[1]);
  net.graph.output("all", last[0]);
  net.graph.output("last", last[1]);
  std::vector<NamedArrays> runs;
  for (const auto& [count, length] : {std::pair{1, 1}, {1, 16}, {3, 7}}) runs.push_back({{"steps", floats_like_noise({count, length, 5})}});
  return net.package("lstm", std::move(runs));
}

/// With all that is optional, and what CoreML's own layers do not have: lengths, and weights that a run gives.
Package recurrent_layers() {
  Network net;
  Value x = net.graph.input("steps", {2, Dim::symbol("S", 16), 5}, f32);
  Values weights, given;
  for (const std::int64_t from : {5, 5, 12, 12})
    for (const Dims& shape : {Dims{6, from}, Dims{6, 6}, Dims{6}, Dims{6}}) weights.push_back(net.weight(shape));
  Value h0 = net.graph.input("h0", {4, 2, 6}, f32), lengths = net.graph.input("lengths", {2}, i32);
  const Values first = rnn(x, weights, true, true, {}, h0);
  net.graph.output("relu", first[0]);
  net.graph.output("relu_last", first[1]);
  net.graph.output("tanh", rnn(x, {weights[0], weights[1]})[0]);
  net.graph.output("of_lengths", rnn(x, weights, false, true, lengths)[0]);
  net.graph.output("of_run", rnn(x, {weights[0], slice_axis(reshape(h0, {8, 6}), 0, 0, 6)})[0]);
  const Values c =
      lstm(x, {net.weight({8, 5}), net.weight({8, 2})}, false, {}, net.graph.input("h1", {1, 2, 2}, f32), net.weight({1, 2, 2}));
  net.graph.output("cells", c[2]);
  Array long_and_short(i32, {2});
  long_and_short.set_int(0, 7), long_and_short.set_int(1, 3);
  return net.package("rnn", {{{"steps", floats_like_noise({2, 7, 5})},
                              {"h0", floats_like_noise({4, 2, 6}, 3)},
                              {"h1", floats_like_noise({1, 2, 2}, 5)},
                              {"lengths", long_and_short}}});
}

/// Windows and whole views in turn, and rotary positions of two bases.
Package modern_bert() {
  Package package{"modernbert", SentenceEncoder::saved(fixture("hf_more/modernbert-scores"), {.pooling = "mean"}), {}};
  for (const std::int64_t length : {4, 21}) {
    Array ids(i32, {2, length}), mask(i32, {2, length});
    for (std::int64_t i = 0; i < ids.size(); ++i) ids.set_int(i, 3 + i % 17), mask.set_int(i, i < length || i % length < length / 2);
    package.runs.push_back({{"input_ids", ids}, {"attention_mask", mask}});
  }
  return package;
}

TEST(CoreMl, Models) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  expect_numbers_of_cpu({residual_network(), pools(), vision_transformer(), recurrent_network(), recurrent_layers(), modern_bert()});
}

/// Not loops over the steps.
TEST(CoreMl, LongShortTermMemoryIsItsOwn) {
  const TemporaryFolder folder;
  Network net;
  const Value x = net.graph.input("x", {1, Dim::symbol("S", 16), 5}, f32);
  net.graph.output("y", lstm(x, {net.weight({24, 5}), net.weight({24, 6})})[0]);
  export_coreml(folder / "m.mlpackage", net.package("", {}).saved);
  const std::string program = read_text(folder / "m.mlpackage/Data/com.apple.CoreML/model.mlmodel");
  EXPECT_NE(program.find("lstm"), std::string::npos);
  EXPECT_EQ(program.find("while_loop"), std::string::npos);
}

}  // namespace
}  // namespace rlx::test
