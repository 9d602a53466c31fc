// Sessions and sizes; outputs of every kind; empty tensors; states; memory that is reused in place.
#include <gtest/gtest.h>

#include "backends/cpu/machine/cpu_features.h"
#include "base/cpu_count.h"
#include "ops/evaluated.h"
#include "rlx/session.h"
#include "runtime/fresh_session.h"
#include "runtime/memory/arena.h"

namespace rlx::test {
namespace {

TEST(Memory, ConstantsOwnTheirBytes) {
  Graph graph("constant");
  std::vector<float> values{1, 2, 3};
  const Value c = graph.constant(Array(f32, {3}, std::as_bytes(std::span(values)), nullptr));
  graph.output("y", graph.input("x", {3}, f32) + c);
  const Executable program = session().compile(graph);
  std::fill(values.begin(), values.end(), 100.0f);
  expect_near(program.run({{"x", counting(f32, {3})}}).at("y"), {1, 3, 5}, 0);
}

/// A value, a view of it, and what is computed from the view at other places.
TEST(Memory, AKernelDoesNotReadWhatItWrites) {
  Graph graph("views");
  const Value x = graph.input("x", {64, 64}, f32), a = x * 2, w = reshape(a, {4096}), u = reshape(w, {64, 64});
  graph.output("a", a);
  graph.output("w", w);
  graph.output("reversed", reverse(u, {0, 1}));
  graph.output("turned", transpose(u, {1, 0}) + a);
  const Array values = counting(f32, {64, 64});
  const Outputs seen = session().compile(graph).run({{"x", values}});
  const std::vector<Array> wanted = evaluate(graph, {{"x", values}});
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(seen[i], wanted[i]) << i;
}

/// Kernels that compute two elements in a step: one of the two may be a copy.
TEST(Memory, HalvesThatAreCopiedDoNotMakeAView) {
  Graph graph("halves");
  const Value z = graph.input("z", {5}, c64), x = graph.input("x", {8, 2}, f32);
  const Value left = slice_axis(x, 1, 0, 1), right = slice_axis(x, 1, 1, 2);
  graph.output("conjugate", complex(real(z), -imag(z)));
  graph.output("mirrored", complex(-real(z), imag(z)));
  graph.output("right", concat({left, -right}, 1));
  graph.output("left", concat({-left, right}, 1));
  graph.output("swapped", concat({right, left}, 1));
  graph.output("same", concat({left, right}, 1));
  Array zs(c64, {5});
  for (int i = 0; i < 5; ++i) zs.set_complex(i, {i + 0.5, 3.0 - i});
  const Array xs = counting(f32, {8, 2});
  const Outputs seen = session().compile(graph).run({{"z", zs}, {"x", xs}});
  const std::vector<Array> wanted = evaluate(graph, {{"z", zs}, {"x", xs}});
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(seen[i], wanted[i]) << i;
}

TEST(Products, APartOfAParameterMayHaveTheSizeOfTheRun) {
  const Dim b = Dim::symbol("B", 64);
  Graph graph("scores");
  const Value x = graph.input("x", {b, 64}, f32), w = graph.param("w", {64, 64}, f32);
  graph.output("y", matmul(x, transpose(slice_axis(w, 0, 0, b), {1, 0})));
  Executable program = session().compile(graph);
  const Array weights = uniform(f32, {64, 64}, -1, 1, 1);
  program.set_param("w", weights);
  for (const std::int64_t rows : {16, 64, 5}) {
    const Array values_of_x = uniform(f32, {rows, 64}, -1, 1, 2);
    // Sums of 64 terms up to 1.
    expect_near(program.run({{"x", values_of_x}}).at("y"), values_of(evaluate(graph, {{"x", values_of_x}, {"w", weights}})[0]), 1e-5);
  }
}

TEST(Sessions, RefuseAbsurdNumbersOfThreads) {
  for (const int threads : {-1, 4096}) {
    SessionOptions options;
    options.threads = threads;
    expect_error(error_of([&] { Session(Device::cpu(), options); }), {"threads (allowed: 1..4095"});
  }
}

TEST(Sessions, HaveLevelsOfTheirOwn) {
  Graph graph;
  const Value x = graph.input("x", {5, 300}, f32), w = graph.param("w", {300, 40}, f32);
  graph.output("y", exp(matmul(x, w) * 0.01));
  Array ones(f32, {300, 40}), more(f32, {5, 300});
  for (std::int64_t i = 0; i < ones.size(); ++i) ones.set_double(i, std::sin(static_cast<double>(i)));
  for (std::int64_t i = 0; i < more.size(); ++i) more.set_double(i, std::cos(static_cast<double>(i)));
  std::vector<Array> results;
  for (const cpu::CpuLevel level : cpu::allowed_levels(cpu::cpu_features())) {
    const Session session(Device::cpu(), {.cpu_level = std::string(cpu::to_string(level))});
    Executable program = session.compile(graph);
    program.set_param("w", ones);
    results.push_back(program.run({{"x", more}}).at("y"));
    for (std::int64_t i = 0; i < results[0].size(); ++i)
      EXPECT_NEAR(results.back().get_double(i), results[0].get_double(i), 1e-5) << cpu::to_string(level);
  }
  if (cpu::allowed_levels(cpu::cpu_features()).size() > 1) {
    EXPECT_NE(results.back(), results[0]) << "portable kernels round twice where others fuse";
  }
  const std::string error = error_of([] { Session(Device::cpu(), {.cpu_level = "avx3"}); });
  EXPECT_TRUE(error.starts_with("session: cpu_level: 'avx3' is not a level of this CPU")) << error;
}

TEST(Compile, RefusesGraphsWithoutOutputsAndStatesOfAnotherType) {
  Graph empty("empty");
  empty.input("x", {2}, f32);
  expect_error(error_of([&] { session().compile(empty); }), {"graph 'empty'", "no outputs"});
  Graph graph("wider");
  graph.output("s", concat({graph.state("s", {2}, f32), graph.input("x", {1}, f32)}, 0));
  expect_error(error_of([&] { session().compile(graph); }), {"output 's' is f32[3]", "state", "f32[2]"});
}

/// As many buffers as an epilogue can be called with (with the tile and the result), and more, as a chain on the product and as one sum
/// computed beside it.
void expect_sum_after_product(int count) {
  for (const bool chain : {true, false}) {
    Graph graph;
    const Value a = graph.input("a", {64, 64}, f32), b = graph.input("b", {64, 64}, f32);
    std::map<std::string, Feed> feeds{{"a", array_of(f32, {64, 64}, Doubles(4096, 1))}, {"b", array_of(f32, {64, 64}, Doubles(4096, 2))}};
    Values addends;
    for (int i = 0; i < count; ++i) {
      addends.push_back(graph.input(fmt::format("x{}", i), {64, 64}, f32));
      feeds.emplace(fmt::format("x{}", i), array_of(f32, {64, 64}, Doubles(4096, i)));
    }
    Value total = chain ? matmul(a, b) : addends[0];
    for (std::size_t i = chain ? 0 : 1; i < addends.size(); ++i) total = total + addends[i];
    graph.output("y", chain ? total : matmul(a, b) + total);
    expect_near(session().compile(graph).run(feeds).at("y"), Doubles(4096, 64 * 2 + count * (count - 1) / 2), 0);
  }
}

TEST(Products, ManyAddendsAfterAProduct) {
  for (const int count : {62, 63, 100}) expect_sum_after_product(count);
}

/// What a run lends from the system is kept for a few runs only.
TEST(Arenas, AreKeptInSmallNumberAndCanBeTrimmed) {
  ArenaPool pool(1 << 16);
  {
    std::vector<std::unique_ptr<Arena, std::function<void(Arena*)>>> lent;
    for (std::size_t i = 0; i < 3 * ArenaPool::most_idle; ++i) lent.push_back(pool.borrow());
    EXPECT_EQ(pool.idle(), 0u);
  }
  EXPECT_EQ(pool.idle(), ArenaPool::most_idle);
  pool.borrow();
  EXPECT_EQ(pool.idle(), ArenaPool::most_idle);
  pool.trim();
  EXPECT_EQ(pool.idle(), 0u);
}

TEST(Symbols, SizesBeyond64BitsAreErrors) {
  Graph graph;
  const Dim b = Dim::symbol("B", std::int64_t{1} << 40);
  const Value x = graph.input("x", {b}, f32), wide = graph.input("wide", {b * (std::int64_t{1} << 38), 0}, f32);
  graph.output("y", concat({x, sum(wide, {1})}, 0));
  expect_error(error_of([&] { session().compile(graph); }), {"64"});
}

TEST(Symbols, AreSolvedFromSumsAndMustAgree) {
  Graph graph;
  const Dim b = Dim::symbol("B", 8), s = Dim::symbol("S", 8);
  const Value joined = graph.input("joined", {b + s * 2}, f32), one = graph.input("one", {b}, f32);
  graph.output("y", concat({joined, one}, 0));
  const Executable program = session().compile(graph);
  EXPECT_EQ(program.run({{"joined", counting(f32, {7})}, {"one", counting(f32, {3})}}).at("y").shape(), Shape{10});
  expect_error(error_of([&] { program.run({{"joined", counting(f32, {6})}, {"one", counting(f32, {3})}}); }), {"joined"});
  Graph square;
  square.output("y", square.input("x", {b, b}, f32) * 2);
  expect_error(error_of([&] { session().compile(square).run({{"x", counting(f32, {2, 3})}}); }),
               {"input 'x'", "[2,3]", "axis 1 is 3", "2"});
}

TEST(States, StartAtZeroAndFollowTheOutputOfTheirName) {
  Graph graph;
  graph.output("total", graph.state("total", {2}, f32) + graph.input("x", {2}, f32));
  Executable program = session().compile(graph);
  const Array x = array_of(f32, {2}, {1, 10});
  program.run({{"x", x}});
  expect_near(program.run({{"x", x}}).at("total"), {2, 20}, 0);
  expect_near(program.state("total"), {2, 20}, 0);
  program.set_state("total", array_of(f32, {2}, {5, 5}));
  expect_near(program.run({{"x", x}}).at("total"), {6, 15}, 0);
  expect_error(error_of([&] { program.state("x"); }), {"'x' is an input, not a state"});
  expect_error(error_of([&] { program.set_state("total", counting(i32, {2})); }), {"state 'total'", "i32", "f32"});
}

/// Of a state that cannot be written over, as its elements change places, the next value is written where the last but one was, unless
/// somebody keeps that.
TEST(States, TakeTurnsWithTwoMemoriesAndLeaveWhatIsKept) {
  Graph graph;
  graph.output("total", reverse(graph.state("total", {2}, f32), {0}) + graph.input("x", {2}, f32));
  Executable program = session().compile(graph);
  const Array x = array_of(f32, {2}, {1, 10});
  const auto after_a_run = [&] {
    program.run({{"x", x}});
    return program.state("total").bytes().data();
  };
  const std::byte *const first = after_a_run(), *const second = after_a_run();
  EXPECT_NE(first, second);
  EXPECT_EQ(after_a_run(), first);
  EXPECT_EQ(after_a_run(), second);
  const Array kept = program.state("total");
  const std::byte* const beside = after_a_run();
  EXPECT_EQ(beside, first);
  EXPECT_NE(after_a_run(), second);
  expect_near(kept, {22, 22}, 0);
  const Array given = array_of(f32, {2}, {5, 5});
  program.set_state("total", given);
  for (int run = 0; run < 3; ++run) program.run({{"x", x}});
  expect_near(given, {5, 5}, 0);
  expect_near(program.state("total"), {17, 26}, 0);
}

TEST(OutputsOfEveryKind, InputConstantViewAndDuplicate) {
  Graph graph;
  const Value x = graph.input("x", {2, 3}, f32), sum_of_x = sum(x, {1});
  graph.output("input", x);
  graph.output("constant", graph.constant(array_of(f32, {2}, {7, 8})));
  graph.output("view", reshape(x, {6}));
  graph.output("sum", sum_of_x);
  graph.output("again", sum_of_x);
  graph.output("view of sum", reshape(sum_of_x, {2, 1}));
  const Array fed = counting(f32, {2, 3});
  const Outputs y = session().compile(graph).run({{"x", fed}});
  EXPECT_EQ(y.at("input"), fed);
  EXPECT_NE(y.at("input").bytes().data(), fed.bytes().data()) << "an output is the caller's own";
  expect_near(y.at("constant"), {7, 8}, 0);
  expect_near(y.at("view"), {0, 1, 2, 3, 4, 5}, 0);
  expect_near(y.at("sum"), {3, 12}, 0);
  expect_near(y.at("again"), {3, 12}, 0);
  expect_near(y.at("view of sum"), {3, 12}, 0);
}

TEST(EmptyTensors, RunThroughEveryKindOfKernel) {
  Graph graph;
  const Value x = graph.input("x", {0, 3}, f32);
  graph.output("pointwise", tanh(x));
  graph.output("sum", sum(x, {0}));
  graph.output("product", matmul(transpose(x, {1, 0}), x));
  graph.output("joined", concat({x, scalar(x, 1, f32) + iota(x, {1, 3}, f32, 1)}, 0));
  for (const bool fuse : {true, false}) {
    SessionOptions options;
    options.fuse = fuse;
    options.cache_folder = "";
    const Outputs y = Session(Device::cpu(), options).compile(graph).run({{"x", Array(f32, {0, 3})}});
    EXPECT_EQ(y.at("pointwise").shape(), (Shape{0, 3}));
    expect_near(y.at("sum"), {0, 0, 0}, 0);
    expect_near(y.at("product"), Doubles(9, 0), 0);
    expect_near(y.at("joined"), {1, 2, 3}, 0);
  }
}

/// Every step reads its operand at the index it writes (in place), or turned round (not in place).
TEST(InPlace, OnlyWhereEveryElementIsReadBeforeItIsWritten) {
  SessionOptions options;
  options.fuse = false;
  options.cache_folder = "";
  const Session unfused(Device::cpu(), options);
  const Array x = uniform(f32, {64, 64}, -1, 1, 1);
  for (const bool turn : {false, true}) {
    Graph graph;
    Value h = graph.input("x", {64, 64}, f32);
    for (int i = 0; i < 6; ++i) h = turn ? transpose(neg(h), {1, 0}) : neg(abs(h));
    graph.output("y", h);
    const Executable program = unfused.compile(graph);
    EXPECT_EQ(program.run({{"x", x}}).at("y"), evaluate(graph, {{"x", x}})[0]);
    EXPECT_EQ(program.arena_bytes(), (turn ? 2 : 1) * 64 * 64 * 4);
  }
}

/// The residual is read where the product is stored; what the product itself reads stays.
TEST(InPlace, AProductStoresWhereWhatIsAddedToItWas) {
  const Session session(Device::cpu(), {.cache_folder = ""});
  const Array x = uniform(f32, {96, 64}, -1, 1, 1), w = uniform(f32, {64, 64}, -0.2, 0.2, 2);
  for (const bool own : {false, true}) {
    Graph graph;
    const Value in = graph.input("x", {96, 64}, f32), weight = graph.param("w", {64, 64}, f32);
    const Value h = matmul(in, weight), wide = gelu(matmul(h, weight));
    const Value y = matmul(own ? h : wide, weight) + h;
    graph.output("y", matmul(y, weight));
    Executable program = session.compile(graph);
    program.set_param("w", w);
    const Array reference = evaluate(graph, {{"x", x}, {"w", w}})[0];
    Doubles wanted;
    for (std::int64_t i = 0; i < reference.size(); ++i) wanted.push_back(reference.get_double(i));
    expect_near(program.run({{"x", x}}).at("y"), wanted, 1e-4);  // four sums of 64 terms of about 1, in another order
    EXPECT_EQ(program.arena_bytes(), 2 * 96 * 64 * 4);
    EXPECT_EQ(program.live_bytes(), program.arena_bytes());
  }
}

TEST(Threads, MoreThanThereAreCpusGiveTheSameBits) {
  Graph graph;
  const Value x = graph.input("x", {70, 200}, f32);
  graph.output("y", softmax(matmul(x, transpose(x, {1, 0}))));
  const Array in = uniform(f32, {70, 200}, -1, 1, 1);
  const auto bits = [&](int threads) {
    return Session(Device::cpu(), {.threads = threads, .cache_folder = ""}).compile(graph).run({{"x", in}}).at("y");
  };
  EXPECT_EQ(bits(granted_cpus() + 5), bits(1));
}

TEST(InPlace, AValueThatIsReadAgainStays) {
  SessionOptions options;
  options.fuse = false;
  options.cache_folder = "";
  Graph graph;
  const Value a = graph.input("x", {100}, f32) + 1, b = a * 2;
  graph.output("y", a * b);
  const Array x = counting(f32, {100});
  EXPECT_EQ(Session(Device::cpu(), options).compile(graph).run({{"x", x}}).at("y"), evaluate(graph, {{"x", x}})[0]);
}

}  // namespace
}  // namespace rlx::test
