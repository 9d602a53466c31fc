// The gradient of attention with many queries, whose scores are computed again in blocks, against that of whole scores.
#include <gtest/gtest.h>

#include "rlx/session.h"
#include "rlx/text.h"
#include "transform/numeric.h"

namespace rlx::test {
namespace {

constexpr std::int64_t batch = 2, shared_heads = 2, size = 3;

// k, for each head of q.
Value for_each_head(Value k, const Dim& heads) {
  Dims shape = k.shape();
  shape.insert(shape.begin() + 2, *Dim::exact_div(heads, k.dim(1)));
  Value wide = broadcast_to(expand_dims(k, {2}), shape);
  return reshape(wide, {k.dim(0), heads, k.dim(2), k.dim(3)});
}

// attention, with all of its scores.
Value attention_of_whole_scores(Value q, Value k, Value v, const AttentionOptions& asked) {
  Value scores = einsum("bhqd,bhkd->bhqk", {q, for_each_head(k, q.dim(1))}) * (asked.scale != 0 ? asked.scale : 1 / std::sqrt(3.0));
  if (asked.softcap > 0) scores = tanh(scores / asked.softcap) * asked.softcap;
  if (asked.bias) scores = scores + asked.bias;
  const Dims line{1, 1, q.dim(2), 1}, keys{1, 1, 1, k.dim(2)};
  Value place = iota(q, line, i32, 2) + dim_value(q, k.dim(2), i32) - dim_value(q, q.dim(2), i32);
  if (asked.positions) place = expand_dims(asked.positions, asked.positions.rank() == 1 ? Axes{0, 1, 3} : Axes{1, 3});
  Value ahead = place - iota(q, keys, i32, 3), keep = ge(ahead, scalar(ahead, asked.causal || asked.window > 0 ? 0 : -1e9, i32));
  if (asked.window > 0) keep = logical_and(keep, lt(ahead, scalar(ahead, static_cast<double>(asked.window), i32)));
  if (asked.mask) keep = logical_and(keep, asked.mask);
  // No score here is below -1000, so that those that are left out weigh nothing, and a row of them is made zero.
  Value seen = select(keep, scores, scalar(scores, -1000, f64));
  Value weights = select(keep, exp(seen - stop_gradient(reduce_max(seen, {-1}, true))), scalar(scores, 0, f64));
  Value total = sum(weights, {-1}, true), none = eq(total, scalar(total, 0, f64));
  return einsum("bhqk,bhkd->bhqd", {weights / select(none, scalar(total, 1, f64), total), for_each_head(v, q.dim(1))});
}

/// What an attention is asked, with the operands of its masks, positions and biases.
struct Form {
  std::int64_t heads, queries, keys;
  std::function<AttentionOptions(const Values& more)> options;
  std::vector<Array> more;
  std::size_t biases = 0;  // the first of `more`, whose gradients are taken too

  std::vector<Array> operands(std::int64_t places = batch) const {
    std::vector<Array> all{random_f64({places, heads, queries, size}, 1), random_f64({places, shared_heads, keys, size}, 2),
                           random_f64({places, shared_heads, keys, size}, 3)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Value loss(const Values& x, bool in_blocks) const {
    const AttentionOptions asked = options({x.begin() + 3, x.end()});
    Value y = in_blocks ? attention(x[0], x[1], x[2], asked) : attention_of_whole_scores(x[0], x[1], x[2], asked);
    return sum_all(sin(y * 3) * cos(iota(y, y.shape(), f64, 2)));
  }
  Values gradient(const Values& x, bool in_blocks) const {
    return grad(loss(x, in_blocks), {x.begin(), x.begin() + 3 + static_cast<std::ptrdiff_t>(biases)});
  }
};

Graph graph_from(const std::vector<Array>& x, const Function& program) {
  Graph graph;
  std::vector<Type> types;
  for (const Array& array : x) types.push_back(type_of(array));
  const Values results = program(inputs_for(graph, types));
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  return graph;
}

int loops_of(const Graph& graph) {
  int found = 0;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) found += graph.node(id).op->name == "scan" ? 1 : 0;
  return found;
}

void expect_near(const std::vector<Array>& seen, const std::vector<Array>& wanted, double tolerance) {
  ASSERT_EQ(seen.size(), wanted.size());
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_LE(difference(seen[i], wanted[i]), tolerance * largest_magnitude(wanted[i])) << i;
}

// By kernels: the reference takes seconds for so many scores.
std::vector<Array> computed(const Graph& graph, const std::vector<Array>& x) {
  const auto fed = named(x);
  std::vector<Array> all;
  for (auto& [name, array] : Session().compile(graph).run({fed.begin(), fed.end()})) all.push_back(array);
  return all;
}

void expect_the_gradient_of_whole_scores(const Form& form, int parts) {
  const std::vector<Array> x = form.operands();
  const Graph blocks = graph_from(x, [&](const Values& v) { return form.gradient(v, true); }),
              whole = graph_from(x, [&](const Values& v) { return form.gradient(v, false); });
  EXPECT_EQ(loops_of(blocks), parts);
  EXPECT_EQ(loops_of(whole), 0);
  expect_near(computed(blocks, x), computed(whole, x), 1e-12);  // sums of 600 roundings, in two orders
}

AttentionOptions plain(const Values&) { return {}; }

Array random_bools(std::vector<std::int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  return random_array({boolean, Dims(shape.begin(), shape.end())}, 0, 1, random);
}

TEST(AttentionGradient, OfEveryQueryAndKey) { expect_the_gradient_of_whole_scores({2, 517, 530, plain, {}}, 1); }

TEST(AttentionGradient, OfHeadsThatShareKeysAndASoftCap) {
  expect_the_gradient_of_whole_scores({4, 512, 512, [](const Values&) { return AttentionOptions{.scale = 2, .softcap = 1.5}; }, {}}, 1);
}

TEST(AttentionGradient, OfQueriesThatSeeThoseBeforeThem) {
  const auto causal = [](const Values&) { return AttentionOptions{.causal = true}; };
  expect_the_gradient_of_whole_scores({2, 530, 700, causal, {}}, 4);
  expect_the_gradient_of_whole_scores({2, 1100, 512, causal, {}}, 4);  // 588 queries see no key
}

TEST(AttentionGradient, OfWindows) {
  const auto window = [](const Values&) { return AttentionOptions{.causal = true, .window = 100}; };
  expect_the_gradient_of_whole_scores({4, 600, 600, window, {}}, 4);
  expect_the_gradient_of_whole_scores({2, 513, 900, window, {}}, 4);
}

TEST(AttentionGradient, OfMasksAndPositions) {
  const auto masked = [](const Values& more) { return AttentionOptions{.mask = more[0]}; };
  expect_the_gradient_of_whole_scores({2, 520, 512, masked, {random_bools({2, 1, 1, 512}, 4)}}, 1);
  expect_the_gradient_of_whole_scores({4, 520, 512, masked, {random_bools({1, 4, 520, 1}, 5)}}, 1);  // rows that see nothing
  const auto placed = [](const Values& more) {
    return AttentionOptions{.causal = true, .window = 50, .mask = more[0], .positions = more[1]};
  };
  std::mt19937 random(6);
  expect_the_gradient_of_whole_scores({2, 520, 512, placed, {random_bools({520, 512}, 7), random_array({i32, {2, 520}}, 0, 530, random)}},
                                      1);
}

TEST(AttentionGradient, OfBiases) {
  const auto biased = [](const Values& more) { return AttentionOptions{.bias = more[0]}; };
  expect_the_gradient_of_whole_scores({2, 520, 515, biased, {random_f64({2, 2, 520, 515}, 8)}, 1}, 1);
  expect_the_gradient_of_whole_scores({4, 520, 515, biased, {random_f64({1, 4, 520, 515}, 9)}, 1}, 1);
  expect_the_gradient_of_whole_scores({4, 520, 515, biased, {random_f64({4, 1, 515}, 10)}, 1}, 1);  // as ALiBi's
  expect_the_gradient_of_whole_scores({4, 520, 515, biased, {random_f64({2, 1, 520, 1}, 11)}}, 1);  // changes nothing
  const auto all = [](const Values& more) {
    return AttentionOptions{.softcap = 2, .causal = true, .window = 90, .mask = more[1], .bias = more[0]};
  };
  expect_the_gradient_of_whole_scores({4, 530, 515, all, {random_f64({1, 4, 530, 515}, 12), random_bools({2, 1, 1, 515}, 13)}, 1}, 4);
  expect_the_gradient_of_whole_scores({4, 515, 530, all, {random_f64({2, 1, 1, 530}, 14), random_bools({515, 530}, 15)}, 1}, 4);
}

TEST(AttentionGradient, OfABiasIsLeftOutWhereNothingAsksForIt) {
  const Form form{2, 512, 600, [](const Values& more) { return AttentionOptions{.bias = more[0]}; }, {random_f64({1, 2, 512, 600}, 8)}, 0};
  const std::vector<Array> x = form.operands();
  const Graph graph = graph_from(x, [&](const Values& v) { return form.gradient(v, true); });
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id)
    EXPECT_LE(graph.node(id).results.size(), 3U) << graph.node(id).op->name;
  expect_near(computed(graph, x), computed(graph_from(x, [&](const Values& v) { return form.gradient(v, false); }), x), 1e-12);
}

// The gradients where the sizes of queries and keys are symbols, and those of whole scores.
void expect_the_gradient_of_open_sizes(const Form& form) {
  const std::vector<Array> x = form.operands();
  const Dim queries = Dim::symbol("s", 1500), keys = Dim::symbol("t", 1100);
  std::vector<Type> types;
  for (const Array& array : x) types.push_back(type_of(array));
  for (Type& type : types)
    for (Dim& dim : type.shape) dim = dim == Dim(form.queries) ? queries : dim == Dim(form.keys) ? keys : dim;
  Graph graph;
  const Values results = form.gradient(inputs_for(graph, types), true);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  EXPECT_EQ(loops_of(graph), 1);
  const std::vector<Array> wanted = computed(graph_from(x, [&](const Values& v) { return form.gradient(v, false); }), x);
  expect_near(computed(parse_graph(to_text(graph), "text"), x), wanted, 1e-12);
  if (form.queries * form.keys < 30'000) expect_near(evaluate(graph, named(x)), wanted, 1e-12);
}

TEST(AttentionGradient, OfOpenSizes) {
  const auto causal = [](const Values& more) { return AttentionOptions{.softcap = 2, .causal = true, .bias = more[0]}; };
  for (const auto& [queries, keys] : {std::pair{7, 9}, {128, 130}, {129, 600}, {700, 256}})
    expect_the_gradient_of_open_sizes({4, queries, keys, causal, {random_f64({1, 4, queries, keys}, 16)}, 1});
  const auto masked = [](const Values& more) { return AttentionOptions{.window = 40, .mask = more[0], .positions = more[1]}; };
  std::mt19937 random(6);
  expect_the_gradient_of_open_sizes({2, 300, 310, masked, {random_bools({300, 310}, 7), random_array({i32, {300}}, 0, 310, random)}});
}

TEST(AttentionGradient, MatchesDifferences) {
  const Form form{2, 513, 514, [](const Values&) { return AttentionOptions{.softcap = 2, .causal = true}; }, {}};
  const std::vector<Array> x = form.operands(1);
  const std::vector<Array> gradients = run(x, [&](const Values& v) { return form.gradient(v, true); });
  double along = 0;
  std::vector<Array> after, before;
  constexpr double step = 1e-5;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Array direction = random_f64(x[i].shape(), 20 + static_cast<unsigned>(i));
    along += inner_product(gradients[i], direction);
    after.push_back(moved(x[i], direction, step)), before.push_back(moved(x[i], direction, -step));
  }
  const auto at = [&](const std::vector<Array>& place) {
    return run(place, [&](const Values& v) { return Values{form.loss(v, true)}; })[0].get_double(0);
  };
  EXPECT_NEAR(along, (at(after) - at(before)) / (2 * step), 1e-7 * (1 + std::abs(along)));
}

TEST(AttentionGradient, HasADerivativeAndABatch) {
  const Form form{2, 512, 512, [](const Values&) { return AttentionOptions{.causal = true}; }, {}};
  const std::vector<Array> x = form.operands();
  const auto second = [&](const Values& v, bool in_blocks) {
    const Values first = form.gradient(v, in_blocks);
    return jvp(first, {v[0], v[1], v[2]}, {v[1], v[2], v[0]});
  };
  expect_near(run(x, [&](const Values& v) { return second(v, true); }), run(x, [&](const Values& v) { return second(v, false); }), 1e-11);
  const auto each = [&](const Values& v, bool in_blocks) {
    return vmap(
        [&](const Values& one) {
          Values alone;
          for (Value value : one) alone.push_back(expand_dims(value, {0}));
          return form.gradient(alone, in_blocks);
        },
        v, {0, 0, 0});
  };
  expect_near(run(x, [&](const Values& v) { return each(v, true); }), run(x, [&](const Values& v) { return each(v, false); }), 1e-12);
}

std::int64_t planned_bytes(const Dim& length, bool has_bias) {
  constexpr std::int64_t heads = 8, features = 64;
  Graph graph;
  Values x;
  for (const char* name : {"q", "k", "v"}) x.push_back(graph.input(name, {4, heads, length, features}, f32));
  Value bias = has_bias ? graph.input("bias", {heads, length, length}, f32) : Value();
  const Values gradients = grad(sum_all(square(attention(x[0], x[1], x[2], {.causal = true, .bias = bias}))), x);
  for (std::size_t i = 0; i < gradients.size(); ++i) graph.output("d" + std::to_string(i), gradients[i]);
  return Session().compile(graph).arena_bytes();
}

TEST(AttentionGradient, NeedsNoMemoryForWholeScores) {
  for (const bool has_bias : {false, true})
    for (const bool is_open : {false, true}) {
      const auto at = [&](std::int64_t length) { return planned_bytes(is_open ? Dim::symbol("n", length) : Dim(length), has_bias); };
      EXPECT_LT(at(2048), 2.2 * static_cast<double>(at(1024))) << has_bias << is_open;
      EXPECT_LT(at(2048), 4 * 8 * 2048 * 2048 * 4 / 2) << has_bias << is_open;
    }
}

TEST(Attention, OfABatchStaysOne) {
  const std::vector<Array> x{random_f64({3, 2, 2, 5, 4}, 1), random_f64({2, 2, 6, 4}, 2), random_f64({3, 2, 2, 6, 4}, 3),
                             random_bools({3, 5, 6}, 4), numbers({3, 5}, {0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0, 5, 5, 5, 5})};
  const auto one = [](const Values& v) {
    return Values{attention(v[0], v[1], v[2], {.causal = true, .mask = v[3], .positions = cast(v[4], i32)})};
  };
  const Graph batched = graph_from(x, [&](const Values& v) { return vmap(one, v, {0, std::nullopt, 0, 0, 0}); });
  int whole = 0;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(batched.size()); ++id) whole += batched.node(id).op->name == "attention" ? 1 : 0;
  EXPECT_EQ(whole, 1);
  const Array seen = evaluate(batched, named(x))[0];
  for (std::int64_t i = 0; i < 3; ++i) {
    const Array alone = run({slice_of(x[0], i), x[1], slice_of(x[2], i), slice_of(x[3], i), slice_of(x[4], i)}, one)[0];
    EXPECT_LE(difference(slice_of(seen, i), alone), 1e-14) << i;
  }
}

}  // namespace
}  // namespace rlx::test
