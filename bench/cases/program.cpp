#include "cases/program.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "ops/nn/rounded_attention.h"
#include "quant/block_format.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::bench {
namespace {

/// The same numbers, rounded.
Array as_type(const Array& values, DType dtype) {
  if (dtype == f32) return values;
  Array narrow(dtype, values.shape());
  for (std::int64_t i = 0; i < values.size(); ++i) narrow.set_double(i, values.get_double(i));
  return narrow;
}

/// Blocks of the numbers of `fill`, (..., n, k) -> (..., n, bytes).
Array in_blocks(const BlockFormat& format, std::vector<std::int64_t> shape) {
  const Array values = filled(shape, 3);
  shape.back() = shape.back() / format.values * format.bytes;
  Array blocks(u8, std::move(shape));
  format.encode(values.values<float>().data(), nullptr, blocks.mutable_bytes().data(), values.size());
  return blocks;
}

Dims dims_of(const Array& array) { return {array.shape().begin(), array.shape().end()}; }

}  // namespace

Program attention_program(std::int64_t heads, std::int64_t depth, std::int64_t length, bool causal, DType dtype, bool gradient) {
  const std::vector<std::int64_t> shape{1, heads, length, depth};
  Graph graph("attention");
  const auto input = [&](const char* name) { return graph.input(name, {1, heads, length, depth}, dtype); };
  const Value q = input("q"), k = input("k"), v = input("v");
  AttentionOptions options;
  options.causal = causal;
  const Value result = cast(attention(q, k, v, options), f32);
  graph.output("out", result);
  if (gradient) {
    const Values gradients = grad(sum_all(result * cos(result)), {q, k, v});
    for (std::size_t i = 0; i < gradients.size(); ++i) graph.output(fmt::format("gradient{}", i), gradients[i]);
  }
  constexpr double forward_products = 2, all_products = 6;  // scores, result; their gradients: of weights, values, queries and keys
  const auto values = [&](std::uint32_t seed) { return as_type(filled(shape, seed), dtype); };
  const double pairs = causal ? static_cast<double>(length * (length + 1) / 2) : static_cast<double>(length * length);
  return {.graph = graph,
          .inputs = {{"q", values(1)}, {"k", values(3)}, {"v", values(5)}},
          .params = {},
          .shape = shape,
          .name = fmt::format("{} heads x {}, length {}{}, {}{}", heads, depth, length, causal ? ", causal" : "", rlx::name(dtype),
                              gradient ? ", gradient" : ""),
          .about = {{"kind", gradient ? "attention gradient" : "attention"},
                    {"type", rlx::name(dtype)},
                    {"heads", heads},
                    {"depth", depth},
                    {"length", length},
                    {"causal", causal}},
          .flops = 2 * (gradient ? all_products : forward_products) * static_cast<double>(heads * depth) * pairs};
}

Program decode_program(std::int64_t heads, std::int64_t kv_heads, std::int64_t depth, std::int64_t keys, DType dtype) {
  const DType computed = dtype == f16 ? f32 : dtype;
  Graph graph("decode");
  const Value q = graph.input("q", {1, heads, 1, depth}, computed), k = graph.input("k", {1, kv_heads, keys, depth}, dtype),
              v = graph.input("v", {1, kv_heads, keys, depth}, dtype);
  graph.output("out", cast(attention(q, cast(k, computed), cast(v, computed)), f32));
  const auto values = [&](std::int64_t count, std::int64_t rows, std::uint32_t seed, DType type) {
    return as_type(filled({1, count, rows, depth}, seed), type);
  };
  return {
      .graph = graph,
      .inputs = {{"q", values(heads, 1, 1, computed)}, {"k", values(kv_heads, keys, 3, dtype)}, {"v", values(kv_heads, keys, 5, dtype)}},
      .params = {},
      .shape = {1, heads, 1, depth},
      .name = fmt::format("{} queries x {}, {} keys of {} heads, {}", heads, depth, keys, kv_heads, rlx::name(dtype)),
      .about = {{"kind", "decode"}, {"type", rlx::name(dtype)}, {"heads", heads}, {"kv_heads", kv_heads}, {"depth", depth}, {"keys", keys}},
      .flops = 4.0 * static_cast<double>(heads * depth) * static_cast<double>(keys)};
}

Program prompt_program(std::int64_t heads, std::int64_t kv_heads, std::int64_t depth, std::int64_t queries, std::int64_t keys) {
  Graph graph("prompt");
  const Value q = graph.input("q", {1, heads, queries, depth}, f32), k = graph.input("k", {1, kv_heads, keys, depth}, f16),
              v = graph.input("v", {1, kv_heads, keys, depth}, f16);
  AttentionOptions options;
  options.causal = true;
  graph.output("out", rounded_attention(q, cast(k, f32), cast(v, f32), options));
  const auto stored = [&](std::uint32_t seed) { return as_type(filled({1, kv_heads, keys, depth}, seed), f16); };
  const double seen = static_cast<double>(queries) * static_cast<double>(keys - queries) + static_cast<double>(queries * (queries + 1) / 2);
  return {.graph = graph,
          .inputs = {{"q", filled({1, heads, queries, depth}, 1)}, {"k", stored(3)}, {"v", stored(5)}},
          .params = {},
          .shape = {1, heads, queries, depth},
          .name = fmt::format("{} queries of {} x {}, {} keys of {} heads, f16", queries, heads, depth, keys, kv_heads),
          .about = {{"kind", "prompt"}, {"heads", heads}, {"kv_heads", kv_heads}, {"depth", depth}, {"queries", queries}, {"keys", keys}},
          .flops = 4.0 * static_cast<double>(heads * depth) * seen};
}

Program product_program(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  Graph graph("product");
  graph.output("out", cast(matmul(graph.input("x", {m, k}, dtype), graph.param("w", {k, n}, dtype)), f32));
  return {.graph = graph,
          .inputs = {{"x", as_type(filled({m, k}, 1), dtype)}},
          .params = {{"w", as_type(filled({k, n}, 3), dtype)}},
          .shape = {m, n},
          .name = fmt::format("product {} x {} x {}{}", m, n, k, dtype == f32 ? "" : fmt::format(", {}", rlx::name(dtype))),
          .about = {{"kind", "product"}, {"m", m}, {"n", n}, {"k", k}},
          .flops = 2.0 * static_cast<double>(m * n) * static_cast<double>(k)};
}

Program block_product_program(const std::string& type, std::int64_t m, std::int64_t n, std::int64_t k) {
  const Array weights = in_blocks(*find_block_format(type), {n, k});
  Graph graph("block product");
  graph.output("out", block_dot(graph.input("x", {m, k}, f32), graph.param("w", dims_of(weights), u8), type));
  return {.graph = graph,
          .inputs = {{"x", filled({m, k}, 1)}},
          .params = {{"w", weights}},
          .shape = {m, n},
          .name = fmt::format("product {} x {} x {}, {}", m, n, k, type),
          .about = {{"kind", "block product"}, {"type", type}, {"m", m}, {"n", n}, {"k", k}},
          .flops = 2.0 * static_cast<double>(m * n) * static_cast<double>(k)};
}

Program grouped_product_program(const std::string& type, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t experts) {
  const Array weights = in_blocks(*find_block_format(type), {experts, n, k});
  Array expert(i32, {m});
  for (std::int64_t row = 0; row < m; ++row)
    expert.mutable_values<std::int32_t>()[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(row % experts);
  Graph graph("grouped product");
  const Value x = graph.input("x", {m, k}, f32), w = graph.param("w", dims_of(weights), u8);
  graph.output("out", grouped_block_dot(x, w, graph.input("expert", {m}, i32), type, find_block_format(type)->values > 1));
  return {.graph = graph,
          .inputs = {{"x", filled({m, k}, 1)}, {"expert", expert}},
          .params = {{"w", weights}},
          .shape = {m, n},
          .name = fmt::format("product {} x {} x {}, {}, {} matrices", m, n, k, type, experts),
          .about = {{"kind", "grouped product"}, {"type", type}, {"m", m}, {"n", n}, {"k", k}, {"experts", experts}},
          .flops = 2.0 * static_cast<double>(m * n) * static_cast<double>(k)};
}

std::vector<ConvLayer> resnet50_layers() {
  return {{3, 64, 224, 7, 2},   {64, 64, 56, 1, 1},     {64, 64, 56, 3, 1},   {64, 256, 56, 1, 1},   {256, 64, 56, 1, 1},
          {128, 128, 56, 3, 2}, {256, 512, 56, 1, 2},   {128, 128, 28, 3, 1}, {128, 512, 28, 1, 1},  {512, 128, 28, 1, 1},
          {256, 256, 28, 3, 2}, {512, 1024, 28, 1, 2},  {256, 256, 14, 3, 1}, {256, 1024, 14, 1, 1}, {1024, 256, 14, 1, 1},
          {512, 512, 14, 3, 2}, {1024, 2048, 14, 1, 2}, {512, 512, 7, 3, 1},  {512, 2048, 7, 1, 1},  {2048, 512, 7, 1, 1}};
}

Program conv_program(const ConvLayer& layer, std::int64_t batch) {
  const auto& [channels, out_channels, size, kernel, stride] = layer;
  const std::int64_t padding = kernel / 2, out_size = (size + 2 * padding - kernel) / stride + 1;
  Graph graph("conv");
  const Value x = graph.input("x", {batch, channels, size, size}, f32), w = graph.param("w", {out_channels, channels, kernel, kernel}, f32);
  graph.output("out", conv(x, w, {stride}, {padding}));
  return {.graph = graph,
          .inputs = {{"x", filled({batch, channels, size, size}, 1)}},
          .params = {{"w", filled({out_channels, channels, kernel, kernel}, 3)}},
          .shape = {batch, out_channels, out_size, out_size},
          .name = fmt::format("{}x{}/{} of {} at {} to {}, batch {}", kernel, kernel, stride, channels, size, out_channels, batch),
          .about = {{"kind", "conv"},
                    {"batch", batch},
                    {"channels", channels},
                    {"out_channels", out_channels},
                    {"size", size},
                    {"kernel", kernel},
                    {"stride", stride}},
          .flops = 2.0 * static_cast<double>(batch * out_channels * out_size * out_size) * static_cast<double>(channels * kernel * kernel)};
}

Program bottleneck_program(std::int64_t width, std::int64_t size) {
  const std::vector<std::int64_t> shape{1, 4 * width, size, size};
  const std::map<std::string, Array> params{{"narrow", filled({width, 4 * width, 1, 1}, 3)},
                                            {"mix", filled({width, width, 3, 3}, 5)},
                                            {"widen", filled({4 * width, width, 1, 1}, 7)}};
  Graph graph("bottleneck");
  const auto weight = [&](const char* name) { return graph.param(name, dims_of(params.at(name)), f32); };
  const Value x = graph.input("x", Dims(shape.begin(), shape.end()), f32);
  const Value y = relu(conv(relu(conv(x, weight("narrow"))), weight("mix"), {1}, {1}));
  graph.output("out", relu(x + conv(y, weight("widen"))));
  return {.graph = graph,
          .inputs = {{"x", filled(shape, 1)}},
          .params = params,
          .shape = shape,
          .name = fmt::format("block of ResNet-50, {} wide at {}", width, size),
          .about = {{"kind", "bottleneck"}, {"width", width}, {"size", size}},
          .flops = 2.0 * static_cast<double>(size * size) * static_cast<double>((4 + 9 + 4) * width * width)};
}

Array filled(std::vector<std::int64_t> shape, std::uint32_t seed) {
  Array array(f32, std::move(shape));
  fill(array.mutable_values<float>(), seed);
  return array;
}

std::map<std::string, Array> shared_params(const Graph& graph) {
  std::map<std::vector<std::int64_t>, Array> by_shape;
  std::map<std::string, Array> params;
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind != InputKind::param) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& size : value.shape()) shape.push_back(size.value());
    const auto [it, is_new] = by_shape.try_emplace(shape);
    if (is_new) {
      it->second = filled(shape, 3);
      for (float& number : it->second.mutable_values<float>()) number *= 0.1F;  // what a layer adds stays small beside what it is added to
    }
    params[input.name] = it->second;
  }
  return params;
}

Case program_case(const Session& session, const Program& program) {
  Executable executable = session.compile(program.graph);
  executable.set_params(program.params);
  const std::map<std::string, Feed> feeds(program.inputs.begin(), program.inputs.end());
  const auto out = std::make_shared<Array>(f32, program.shape);
  const std::vector<LaunchReport> launches = executable.profile(feeds, 0);
  Case one;
  one.name = program.name;
  one.about = program.about;
  one.flops = program.flops;
  one.arithmetic = std::ranges::max_element(launches, {}, &LaunchReport::flops)->arithmetic;
  one.bytes_read = program.bytes_read;
  one.bytes_written = program.bytes_written;
  one.run = [executable, feeds, out] { executable.run(feeds, {{"out", out->mutable_values<float>()}}); };
  one.result = [out] { return *out; };
  return one;
}

}  // namespace rlx::bench
