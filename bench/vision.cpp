// ResNet-50 and ViT-B/16 with random parameters: time to the first result and per batch, as a share of the multiply-add peak, and where it
// goes. bench/vision_peers.py runs them beside others: --save writes parameters and images for it, and with --serve it answers as
// bench/serve.h says.
#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backends/cpu/peaks/peaks.h"
#include "base/fastest_seconds.h"
#include "cases/cases.h"
#include "models/layers/flow.h"
#include "rlx/ops.h"
#include "serve.h"

namespace {

using namespace rlx;

constexpr std::int64_t image_size = 224, classes = 1000;

// -- ResNet-50 v1.5: the stride of a block stands at its 3 x 3 convolution. Names as in torchvision.

Value normalized(Flow flow, std::string_view name, Value x) {
  Flow here = flow.scope(name);
  const Dims channels{x.dim(1)};
  const Value mean = here.param("running_mean", channels), variance = here.param("running_var", channels);
  return batch_norm(x, mean, variance, here.param("weight", channels), here.param("bias", channels));
}

/// x (N, C, H, W) -> (N, channels, H / stride, W / stride)
Value convolved(Flow flow, std::string_view name, Value x, std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
  const Value weight = flow.scope(name).param("weight", {channels, x.dim(1), kernel, kernel});
  return conv(x, weight, {stride}, {kernel / 2});
}

Value bottleneck(Flow flow, Value x, std::int64_t width, std::int64_t stride) {
  Value y = relu(normalized(flow, "bn1", convolved(flow, "conv1", x, width, 1, 1)));
  y = relu(normalized(flow, "bn2", convolved(flow, "conv2", y, width, 3, stride)));
  y = normalized(flow, "bn3", convolved(flow, "conv3", y, 4 * width, 1, 1));
  if (!(x.dim(1) == Dim(4 * width)))
    x = normalized(flow.scope("downsample"), "1", convolved(flow.scope("downsample"), "0", x, 4 * width, 1, stride));
  return relu(y + x);
}

Value resnet50(Flow flow, Value x) {
  constexpr std::int64_t blocks[] = {3, 4, 6, 3};
  x = relu(normalized(flow, "bn1", convolved(flow, "conv1", x, 64, 7, 2)));
  x = max_pool(x, {3, 3}, {2, 2}, {1, 1});
  for (std::int64_t stage = 0; stage < 4; ++stage)
    for (std::int64_t block = 0; block < blocks[stage]; ++block)
      x = bottleneck(flow.scope(fmt::format("layer{}.{}", stage + 1, block)), x, std::int64_t{64} << stage,
                     stage > 0 && block == 0 ? 2 : 1);
  return flow.linear("fc", mean(x, {2, 3}), classes);
}

// -- ViT-B/16. Names as in timm.

constexpr std::int64_t width = 768, heads = 12, patch = 16;
constexpr double epsilon = 1e-6;

Value attend(Flow flow, Value x) {
  const Value qkv = reshape(flow.linear("qkv", x, 3 * width), {x.dim(0), x.dim(1), 3, heads, width / heads});
  const Value parts = transpose(qkv, {2, 0, 3, 1, 4});  // (3, N, heads, S, D)
  const auto part = [&](std::int64_t i) { return squeeze(slice_axis(parts, 0, i, i + 1), {0}); };
  return flow.linear("proj", reshape(transpose(attention(part(0), part(1), part(2)), {0, 2, 1, 3}), x.shape()), width);
}

Value encoder_block(Flow flow, Value x) {
  x = x + attend(flow.scope("attn"), flow.layer_norm("norm1", x, epsilon));
  const Value wide = gelu(flow.linear("mlp.fc1", flow.layer_norm("norm2", x, epsilon), 4 * width));
  return x + flow.linear("mlp.fc2", wide, width);
}

Value vit_b16(Flow flow, Value x) {
  constexpr std::int64_t patches = (image_size / patch) * (image_size / patch);
  Flow embed = flow.scope("patch_embed.proj");
  Value weight = embed.param("weight", {width, 3, patch, patch}), bias = embed.param("bias", {width});
  Value tokens = transpose(reshape(conv(x, weight, {patch}), {x.dim(0), width, patches}), {0, 2, 1}) + bias;
  Value token = broadcast_to(flow.param("cls_token", {1, 1, width}), {x.dim(0), 1, width});
  x = concat({token, tokens}, 1) + flow.param("pos_embed", {1, patches + 1, width});
  for (int i = 0; i < 12; ++i) x = encoder_block(flow.scope(fmt::format("blocks.{}", i)), x);
  x = flow.layer_norm("norm", x, epsilon);
  return flow.linear("head", squeeze(slice_axis(x, 1, 0, 1), {1}), classes);
}

// -- parameters

Array uniform(std::vector<std::int64_t> shape, float low, float high, std::mt19937& bits) {
  Array array(f32, std::move(shape));
  for (float& value : array.mutable_values<float>()) value = low + (high - low) * static_cast<float>(bits()) * 0x1p-32F;
  return array;
}

/// Values that keep activations of the order of 1: weights of products by their depth, scales and variances near 1.
NamedArrays random_parameters(const Graph& graph, std::mt19937& bits) {
  NamedArrays values;
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind != InputKind::param) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& size : value.shape()) shape.push_back(size.value());
    const bool scale = input.name.ends_with("var") || (shape.size() == 1 && input.name.ends_with("weight"));
    const double depth = static_cast<double>(value.type().size().value()) / static_cast<double>(shape[0]);
    const auto reach = static_cast<float>(shape.size() > 1 ? std::sqrt(3 / depth) : 0.1);
    values[input.name] = scale ? uniform(std::move(shape), 0.5F, 1, bits) : uniform(std::move(shape), -reach, reach, bits);
  }
  return values;
}

struct Options {
  std::string model = "resnet50", cache, save, parameters;
  std::int64_t batch = 1;
  int threads = 2, repeats = 20;
  bool profile = false, serve = false;
};

Graph network(const Options& options) {
  Graph graph;
  const Value image = graph.input("image", {options.batch, 3, image_size, image_size}, f32);
  graph.output("logits", options.model == "resnet50" ? resnet50(Flow(graph), image) : vit_b16(Flow(graph), image));
  return graph;
}

struct Drawn {
  NamedArrays parameters;
  Array images;
};

/// The same in every run.
Drawn draw(const Options& options) {
  std::mt19937 bits(1);
  NamedArrays parameters = random_parameters(network(options), bits);
  return {std::move(parameters), uniform({options.batch, 3, image_size, image_size}, -1, 1, bits)};
}

/// Writes the files that --parameters reads.
void save(const Options& options) {
  const std::filesystem::path folder = options.save;
  const Drawn drawn = draw(options);
  save_safetensors(folder / "model.safetensors", drawn.parameters);
  save_npy(folder / "image.npy", drawn.images);
}

/// With the parameters of the folder, or those that were drawn.
Executable open_network(const Options& options, const NamedArrays& drawn) {
  const Session session(Device::cpu(), {.threads = options.threads, .cache_folder = options.cache});
  Executable executable = session.compile(network(options));
  const std::filesystem::path folder = options.parameters;
  executable.set_params(folder.empty() ? drawn : load_safetensors(folder / "model.safetensors").arrays);
  return executable;
}

/// Of all products, convolutions and attention; a multiply-add counts as two. Convolutions of 3 x 3 count whole, though Winograd's products
/// compute them with fewer: a share of the peak may so be above 1.
double flops_of(const Executable& executable, const bench::Inputs& inputs) {
  const std::vector<LaunchReport> launches = executable.profile(inputs, 0);
  return std::accumulate(launches.begin(), launches.end(), 0.0,
                         [](double total, const LaunchReport& launch) { return total + (launch.kind == "claim" ? launch.flops : 0); });
}

/// Minimum and median of the runs, and the share of the peak that was measured right behind them.
void time_runs(const Options& options, const bench::Work& work, double flops, double first_result_seconds) {
  std::vector<double> times = bench::measure(work, options.repeats);
  const double least = *std::ranges::min_element(times);
  ThreadPool pool(options.threads);
  const double peak = cpu::compute_peak(pool, "f32", 0.5);
  fmt::print("{}, batch {}: first result after {:.1f} ms; run: min {:.3f} ms, median {:.3f} ms; {:.1f} GFLOP/s, {:.0f}% of f32\n",
             options.model, options.batch, first_result_seconds * 1e3, least * 1e3, median(times) * 1e3, flops / least / 1e9,
             100 * flops / least / peak);
}

void run(const Options& options) {
  const Drawn drawn =
      options.parameters.empty() ? draw(options) : Drawn{{}, load_npy(std::filesystem::path(options.parameters) / "image.npy")};
  const bench::Inputs inputs{{"image", drawn.images}};
  const auto begin = bench::Clock::now();
  const Executable executable = open_network(options, drawn.parameters);
  const bench::Work work = [&] { return executable.run(inputs).at("logits"); };
  work();
  const double first_result_seconds = bench::seconds_since(begin);
  bench::measure(work, 2);
  const double flops = flops_of(executable, inputs);
  if (options.serve) {
    fmt::print("{}\n", nlohmann::json{{"version", "this build"}, {"first_result_s", first_result_seconds}, {"flops", flops}}.dump());
    std::fflush(stdout);
    return bench::serve(work);
  }
  time_runs(options, work, flops, first_result_seconds);
  if (options.profile) bench::print_profile(executable, inputs);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times an image model");
  Options options;
  app.add_option("--model", options.model, "resnet50 or vit_b16")->check(CLI::IsMember({"resnet50", "vit_b16"}));
  app.add_option("--batch", options.batch, "images of a run")->check(CLI::Range(1, 1024));
  app.add_option("--threads", options.threads, "threads");
  app.add_option("--repeats", options.repeats, "timed runs")->check(CLI::PositiveNumber);
  app.add_option("--cache", options.cache, "folder of compiled kernels; none when empty");
  app.add_option("--save", options.save, "folder to write model.safetensors and image.npy to; nothing is timed");
  app.add_option("--parameters", options.parameters,
                 "folder to read them from, as --save wrote it; else they are drawn before anything is timed");
  app.add_flag("--profile", options.profile, "print the time of every kind of launch");
  app.add_flag("--serve", options.serve, "be one side of bench/vision_peers.py");
  return bench::run_command(app, argc, argv, [&] { options.save.empty() ? run(options) : save(options); });
}
