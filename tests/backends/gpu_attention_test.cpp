// Attention on GPUs: all options, element types and layouts against the reference in f64.
#include "backends/gpu_device.h"
#include "ops/values.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace gpu_attention_test {

struct Case {
  std::string name;
  std::int64_t batch, heads, kv_heads, queries, keys, features, value_features;
  AttentionOptions options = {};
  bool mask = false, bias = false, positions = false;
  DType element = f32, kept = f32;  // kept: of keys and values, where they are stored
  bool tokens_first = false;        // (batch, token, head, feature)
  bool symbolic = false;
};

AttentionOptions options_of(double softcap, bool causal, std::int64_t window = 0, double scale = 0) {
  AttentionOptions options;
  options.softcap = softcap, options.causal = causal, options.window = window, options.scale = scale;
  return options;
}

std::vector<Case> cases() {
  std::vector<Case> all{
      {"one query of a group", 1, 8, 2, 1, 300, 64, 64, options_of(0, true)},
      {"ragged", 2, 4, 2, 37, 45, 20, 12, options_of(3, true, 0, -0.3)},
      {"every option", 2, 4, 2, 33, 41, 12, 36, options_of(2, true, 9), true, true, true},
      {"wide heads", 1, 2, 1, 5, 40, 256, 136},
      {"tokens first", 2, 4, 2, 70, 90, 32, 32, options_of(0, true), false, false, false, f32, f32, true, true},
      {"narrow keys", 1, 4, 2, 9, 50, 16, 16, options_of(0, false, 7), false, false, false, f32, f16, true},
  };
  for (const DType kept : {bf16, f16})
    all.push_back({"a token behind kept ones", 2, 8, 2, 2, 700, 128, 64, options_of(0, true), false, false, true, f32, kept, false, true});
  for (const DType element : {bf16, f16}) {
    all.push_back({"prompt", 1, 4, 2, 150, 200, 128, 64, options_of(0, true), false, false, false, element, element, true, true});
    all.push_back({"every option", 2, 4, 2, 33, 141, 64, 128, options_of(2, true, 90), true, true, true, element, element});
    all.push_back({"a token", 1, 6, 2, 1, 300, 64, 64, options_of(0, true), false, false, false, element, element, false, true});
    all.push_back({"few rows, every option", 2, 4, 2, 3, 141, 64, 128, options_of(2, true, 90), true, true, true, element, element});
    all.push_back({"heads first", 1, 2, 2, 130, 260, 64, 64, options_of(0, true, 100), false, false, false, element, element});
  }
  return all;
}

struct Fed {
  Graph graph;
  std::map<std::string, Array> arrays;
};

class Builder {
 public:
  /// `wide`: the same numbers in f64.
  Builder(const Case& c, bool wide) : c_(c), is_wide_(wide) {}

  Fed build() {
    AttentionOptions options = c_.options;
    const Dim queries = size("Q", c_.queries), keys = size("K", c_.keys);
    const Value q = rows("q", c_.heads, c_.queries, queries, c_.features, c_.element);
    const Value k = rows("k", c_.kv_heads, c_.keys, keys, c_.features, c_.kept);
    const Value v = rows("v", c_.kv_heads, c_.keys, keys, c_.value_features, c_.kept);
    if (c_.mask) options.mask = fed("mask", {c_.batch, 1, c_.queries, c_.keys}, {c_.batch, 1, queries, keys}, boolean, 0, 1);
    if (c_.bias) options.bias = fed("bias", {1, c_.heads, 1, c_.keys}, {1, c_.heads, 1, keys}, f32, -2, 2);
    if (c_.positions) options.positions = fed("positions", {c_.batch, c_.queries}, {c_.batch, queries}, i32, -3, double(c_.keys));
    Value y = attention(q, k, v, options);
    fed_.graph.output("y", c_.tokens_first ? transpose(y, {0, 2, 1, 3}) : y);
    return std::move(fed_);
  }

 private:
  Dim size(const std::string& name, std::int64_t value) const { return c_.symbolic ? Dim::symbol(name, 2 * value) : Dim(value); }
  Value fed(const std::string& name, std::vector<std::int64_t> shape, const Dims& dims, DType dtype, double low, double high) {
    Dims fixed(shape.begin(), shape.end());
    const Array array = random_array({dtype, fixed}, low, high, random_);
    const bool widens = is_wide_ && is_float(dtype);
    fed_.arrays.emplace(name, widens ? array_of(f64, shape, values_of(array)) : array);
    return fed_.graph.input(name, dims, widens ? f64 : dtype);
  }
  Value rows(const std::string& name, std::int64_t heads, std::int64_t tokens, const Dim& dim, std::int64_t features, DType dtype) {
    const std::int64_t b = c_.batch;
    const Value x = c_.tokens_first
                        ? transpose(fed(name, {b, tokens, heads, features}, {b, dim, heads, features}, dtype, -2, 2), {0, 2, 1, 3})
                        : fed(name, {b, heads, tokens, features}, {b, heads, dim, features}, dtype, -2, 2);
    return is_wide_ ? x : cast(x, c_.element);
  }

  const Case& c_;
  bool is_wide_;
  std::mt19937 random_{7};
  Fed fed_;
};

void expect_reference(const Session& session, const Case& c) {
  SCOPED_TRACE(fmt::format("{} {} {}", c.name, name(c.element), name(c.kept)));
  const Fed fed = Builder(c, false).build(), wide = Builder(c, true).build();
  std::map<std::string, Feed> feeds;
  for (const auto& [name, array] : fed.arrays) feeds.emplace(name, array);
  const Array seen = session.compile(fed.graph).run(feeds).at("y"), wanted = evaluate(wide.graph, wide.arrays)[0];
  const double tolerance = c.element == f32 ? 4e-6 : c.element == f16 ? 2e-3 : 1.6e-2;
  ASSERT_EQ(seen.shape(), wanted.shape());
  for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(seen.get_double(i), wanted.get_double(i), tolerance) << "element " << i;
}

class GpuAttention : public EachGpuTest {};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuAttention, testing::Values("cuda", "rocm"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GpuAttention, OfManyRowsIsThatOfTheReference) {
  const Session on_it = session();
  for (const Case& c : cases())
    if (c.queries > 3) expect_reference(on_it, c);
}

class GpusOfManyUnits : public GpuTest {};

TEST_F(GpusOfManyUnits, ShareTheKeysOfFewRows) {
  for (const int major : {7, 9}) {
    const auto large = first_gpu_with([&](gpu::DeviceFacts& facts) { facts.units = 132, facts.major = major; });
    SessionOptions options;
    options.cache_folder = std::filesystem::path();
    const Session on_it(Device(*large), options);
    for (const Case& c : cases())
      if (c.queries * c.heads / c.kv_heads <= 16 && (major > 7) == (c.kept != f32)) expect_reference(on_it, c);
  }
}

TEST_P(GpuAttention, IsOneLaunchAndCanBeRefused) {
  Graph graph;
  const Value x = graph.input("x", {2, 4, 10, 16}, f32);
  graph.output("y", attention(x, x + 1, x * 2));
  const auto claims = [&](bool claimed) {
    SessionOptions options;
    options.cache_folder = std::filesystem::path();
    options.claims = claimed;
    int count = 0;
    for (const NodeReport& node : Session(Device(backend()), options).compile(graph).explain()) count += node.how == "claimed";
    return count;
  };
  EXPECT_EQ(claims(true), 1);
  EXPECT_EQ(claims(false), 0);
}

}  // namespace gpu_attention_test
}  // namespace rlx::test
