#include "rlx/text.h"

#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/text/text_arrays.h"
#include "ir/verifier.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// The graph read back from its text; the text of that must be the same again.
Graph round_trip(const Graph& graph) {
  const std::string text = to_text(graph);
  const Graph back = parse_graph(text, "text");
  EXPECT_EQ(to_text(back), text);
  EXPECT_EQ(back.name(), graph.name());
  EXPECT_TRUE(structurally_equal(graph, back)) << text;
  return back;
}

std::string error_of(std::string_view text) {
  try {
    parse_graph(text, "f.rlx");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Graph graph_of(const OpDef& op, const Sample& sample) {
  Graph graph(std::string(op.name));
  Values operands;
  for (const auto& operand : sample.operands)
    operands.push_back(graph.input("x" + std::to_string(operands.size()), operand.type.shape, operand.type.dtype));
  Attrs attrs = sample.attrs;
  if (attrs.empty())
    for (const Field& field : op.fields) attrs.push_back(field.initial);
  const Values results = operands.empty() ? apply(graph.data(), op, attrs) : apply(op, attrs, operands);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  return graph;
}

TEST(Text, EverySampleOfEveryOpRoundTrips) {
  int count = 0;
  for (const auto& [name, op] : op_registry())
    for (const Sample& sample : op->samples()) {
      SCOPED_TRACE(name);
      const Graph graph = graph_of(*op, sample);
      verify(graph, "sample");
      verify(round_trip(graph), "text");
      ++count;
    }
  EXPECT_GT(count, 100);
}

TEST(Text, IsWrittenAsDocumented) {
  Graph graph("hello");
  const Dim batch = Dim::symbol("B", 32), length = Dim::symbol("S", 512);
  const Value x = graph.input("x", {batch, length * 2 - 1, 4}, f32), w = graph.param("w", {4, 2}, f32);
  graph.output("y", softmax(dot(x, w, {2}, {0}), 2));
  graph.output("odd name", x);
  EXPECT_EQ(to_text(graph), R"(graph hello(B<=32, S<=512) {
  %0: f32[B,2*S-1,4] = input {label="x"}
  %1: f32[4,2] = input {label="w", role=param}
  %2: f32[B,2*S-1,2] = dot(%0, %1) {lhs_contract=[2], rhs_contract=[0]}
  %3: f32[B,2*S-1,2] = softmax(%2) {axis=2}
  output y = %3
  output "odd name" = %0
}
)");
  const Graph back = round_trip(graph);
  EXPECT_EQ(back.symbols(), graph.symbols());
  EXPECT_EQ(back.inputs()[1].first.kind, InputKind::param);
}

TEST(Text, IsReadAsPeopleWriteIt) {
  const Graph graph = parse_graph(R"(# a comment
    graph "two words" ( B <= 4 , ) {
      %x : f32[B, 3*B - 2*B, 2+1] = input { label = "x" , }  # 3*B - 2*B is B
      %w_long = input {label="w", role=state, dtype=f32, shape=[B,B,3]}
      %sum = add(%x, %w_long.0) output "y" = %sum  # no line is needed for each
      output x = %x
    })",
                                  "f.rlx");
  EXPECT_EQ(to_text(graph), R"(graph "two words"(B<=4) {
  %0: f32[B,B,3] = input {label="x"}
  %1: f32[B,B,3] = input {label="w", role=state}
  %2: f32[B,B,3] = add(%0, %1)
  output y = %2
  output x = %0
}
)");
}

TEST(Text, NamesMayHoldAnything) {
  const std::string odd = std::string("a\"b\\c\n\t\x01\x7f\0z \xc3\xa9\xff", 16);
  Graph graph(odd);
  graph.output(odd, graph.input(odd, {2}, f32));
  graph.output("output", graph.param("graph", {1}, i8));
  graph.output("", graph.state("%1", {1}, i8));
  const Graph back = round_trip(graph);
  EXPECT_EQ(back.inputs()[0].first.name, odd);
  EXPECT_EQ(back.outputs()[0].first, odd);
}

TEST(Text, NodesWithSeveralResultsNameThem) {
  Graph graph("sorted");
  const Value x = graph.input("x", {5}, f32);
  const Values sorted = top_k(x, 2, 0);
  graph.output("values", sorted[0]);
  graph.output("indices", sorted[1]);
  EXPECT_NE(to_text(graph).find(": f32[2], i32[2] = top_k(%0) {"), std::string::npos) << to_text(graph);
  EXPECT_NE(to_text(graph).find("output indices = %1.1"), std::string::npos) << to_text(graph);
  round_trip(graph);
}

/// Every byte pattern of a small type, or many of a large one.
Array patterns(DType dtype) {
  const std::int64_t count = 256 / std::max(1, info(dtype).bits / 8);
  Array array(dtype, {count});
  for (std::size_t i = 0; i < array.bytes().size(); ++i) array.mutable_bytes()[i] = static_cast<std::byte>(i * 37 + i / 7);
  return array;
}

Array first_elements(const Array& from, std::int64_t begin, std::int64_t count) {
  const auto width = static_cast<std::size_t>(bytes_for(from.dtype(), 2)) / 2;
  return {from.dtype(),
          {count},
          from.bytes().subspan(static_cast<std::size_t>(begin) * width, static_cast<std::size_t>(count) * width),
          from.owner()};
}

TEST(Text, ArraysOfEveryTypeKeepTheirBits) {
  for (std::size_t t = 0; t < dtype_table.size(); ++t) {
    const auto dtype = static_cast<DType>(t);
    SCOPED_TRACE(name(dtype));
    const Array all = patterns(dtype);
    Graph graph;
    Array small(dtype, {2, 2});
    for (std::int64_t i = 0; i < 4; ++i) small.set_int(i, i);
    graph.output("small", graph.constant(small));
    graph.output("scalar", graph.constant(Array(dtype, {})));
    graph.output("none", graph.constant(Array(dtype, {0, 3})));
    graph.output("large", graph.constant(all));
    if (!is_packed(dtype))
      for (std::int64_t i = 0; i < all.size(); ++i) graph.output(std::to_string(i), graph.constant(first_elements(all, i, 1)));
    round_trip(graph);
  }
}

TEST(Text, NumbersThatAreHardToPrintKeepTheirBits) {
  const auto limit = [](auto number) { return std::numeric_limits<decltype(number)>(); };
  const std::vector<float> floats{
      0.1f, -0.0f, limit(0.f).max(), limit(0.f).min(), limit(0.f).denorm_min(), -limit(0.f).infinity(), 16777217.f, 8.5899346e9f};
  const std::vector<double> doubles{0.1, -0.0, 1e300, 5e-324, limit(0.).max(), limit(0.).infinity(), limit(0.).quiet_NaN(), 1.0 / 3};
  const std::vector<std::int64_t> integers{limit(std::int64_t{}).min(), limit(std::int64_t{}).max(), -1};
  const std::vector<std::uint64_t> naturals{limit(std::uint64_t{}).max(), 0};
  const std::vector<std::complex<float>> complexes{{0.1f, -0.0f}, {limit(0.f).infinity(), -1}};
  Graph graph;
  graph.output("f", graph.constant(Array::of<float>({8}, floats)));
  graph.output("d", graph.constant(Array::of<double>({8}, doubles)));
  graph.output("i", graph.constant(Array::of<std::int64_t>({3}, integers)));
  graph.output("u", graph.constant(Array::of<std::uint64_t>({2}, naturals)));
  graph.output("c", graph.constant(Array::of<std::complex<float>>({2}, complexes)));
  EXPECT_EQ(to_text(graph).find("bytes"), std::string::npos) << "these are all spelled out";
  round_trip(graph);
}

TEST(Text, DoubleAttributesKeepTheirBits) {
  const double odd_nan = std::bit_cast<double>(0xfff8000000000123ull);
  for (double eps : {1e-5, 0.1, -0.0, 5e-324, 1e300, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::quiet_NaN(), odd_nan}) {
    SCOPED_TRACE(eps);
    Graph graph;
    graph.output("y", leaky_relu(graph.input("x", {2}, f32), eps));
    round_trip(graph);
  }
}

TEST(Text, ArraysCanBeKeptElsewhere) {
  Graph graph;
  Array array(f32, {3});
  array.set_double(1, 0.5);
  graph.output("y", graph.constant(array));
  const std::string text = to_text(graph, [](const Array&) { return std::optional<std::string>("#\"0"); });
  EXPECT_NE(text.find("{value=f32[3] array \"#\\\"0\"}"), std::string::npos) << text;
  const Graph back = parse_graph(text, "text", [&](const std::string& name) {
    EXPECT_EQ(name, "#\"0");
    return array;
  });
  EXPECT_TRUE(structurally_equal(back, graph));
  EXPECT_THROW(parse_graph(text, "text", [](const std::string&) { return Array(f32, {4}); }), Error);
  EXPECT_THROW(parse_graph(text, "text"), Error);
}

TEST(Text, RegionsAreNestedGraphs) {
  Graph graph("power");
  const Value x = graph.input("x", {2}, f32), c = graph.param("c", {2}, f32);
  const auto below = [](Value v, double limit) { return lt(sum(v, {0}), scalar(v, limit, f32)); };
  const auto step = [&](const Values& s) {
    return cond(
        below(s[0], 5), {s[0]}, [&](const Values& t) { return Values{t[0] * c}; }, [&](const Values& t) { return Values{t[0] + x}; });
  };
  const Values result = while_loop([&](const Values& s) { return below(s[0], 100); }, step, {x});
  graph.output("y", result[0]);
  verify(graph, "builders");
  EXPECT_NE(to_text(graph).find("=graph "), std::string::npos) << to_text(graph);
  verify(round_trip(graph), "text");
}

struct Malformed {
  std::string_view text;
  std::string_view error;  // all of it, or the beginning when it ends with "..."
};

class MalformedText : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedText, GivesOneErrorWithLineAndColumn) {
  std::string_view wanted = GetParam().error;
  std::string seen = error_of(GetParam().text);
  if (wanted.ends_with("...")) {
    wanted.remove_suffix(3);
    seen.resize(std::min(seen.size(), wanted.size()));
  }
  EXPECT_EQ(seen, wanted) << GetParam().text;
}

constexpr std::string_view x_line = "graph g(B<=4) {\n%0: f32[B,2] = input {label=\"x\"}\n";

INSTANTIATE_TEST_SUITE_P(
    Head, MalformedText,
    testing::Values(Malformed{"", "f.rlx:1:1: the end of the text where 'graph' is needed"},
                    Malformed{"grph g {}", "f.rlx:1:1: 'grph' where 'graph' is needed"},
                    Malformed{"graph 7 {}", "f.rlx:1:7: '7' where the graph's name is needed"},
                    Malformed{"graph g", "f.rlx:1:8: the end of the text where '{' is needed"},
                    Malformed{"graph g {} x", "f.rlx:1:12: 'x' where the end of the text is needed"},
                    Malformed{"graph g(B) {}", "f.rlx:1:10: ')' where '<=' is needed"},
                    Malformed{"graph g(B<=0) {}", "f.rlx:1:12: symbol 'B': bound 0 is below 1"},
                    Malformed{"graph g(B<=-3) {}", "f.rlx:1:12: symbol 'B': bound -3 is below 1"},
                    Malformed{"graph g(B<=1,\nB<=2) {}", "f.rlx:2:1: symbol 'B' is declared twice"},
                    Malformed{"graph g(B<=9999999999999999999) {}",
                              "f.rlx:1:12: 9999999999999999999 is out of range (allowed: -9223372036854775808..9223372036854775807)"},
                    Malformed{"graph \"g {\n}", "f.rlx:1:7: a string has no end"},
                    Malformed{"graph \"g\\", "f.rlx:1:7: a string has no end"},
                    Malformed{"graph \"\\q\" {}", "f.rlx:1:7: escape '\\q' in a string is unknown (allowed: \\\" \\\\ \\n \\t \\xNN)"},
                    Malformed{"graph \"a\xff\" {}", "f.rlx:1:7: the string 'a\\xff' is not UTF-8 (\\xNN writes a byte)"},
                    Malformed{"graph \"\\x4\" {}", "f.rlx:1:7: \\x in a string needs two hexadecimal digits"},
                    Malformed{"graph g { %a = iota {shape=[-1], dtype=i32} output y = %a }",
                              "f.rlx:1:16: rlx.iota: i32[-1] has a negative size"},
                    Malformed{"graph g { @ }", "f.rlx:1:11: '@' starts nothing that is known"},
                    Malformed{"graph g { \x01 }", "f.rlx:1:11: '\\x01' starts nothing that is known"},
                    Malformed{"graph \"\xc3\xa9\" { $ }", "f.rlx:1:13: '$' starts nothing that is known"},
                    Malformed{"graph g { % }", "f.rlx:1:11: '%' without the name of a value"},
                    Malformed{"graph g { %1. }", "f.rlx:1:11: '.' without the number of a result"},
                    Malformed{"graph g { 12ab }", "f.rlx:1:11: '12ab' is not a number"},
                    Malformed{"graph g { 1.2.3 }", "f.rlx:1:11: '1.2.3' is not a number"},
                    Malformed{"graph g { add }", "f.rlx:1:11: 'add' where a value such as %0, 'output' or '}' is needed"}));

INSTANTIATE_TEST_SUITE_P(
    Node, MalformedText,
    testing::Values(
        Malformed{"graph g {\n  %0: f32[] = sofmax(%1)\n}", "f.rlx:2:15: op 'sofmax' is unknown (near: 'softmax'..."},
        Malformed{"graph g {\n  %0 = abs(%1)\n}", "f.rlx:2:12: %1 has no value here"},
        Malformed{"graph g {\n  %0 = abs(%0)\n}", "f.rlx:2:12: %0 has no value here"},
        Malformed{"graph g { %0 = add }", "f.rlx:1:16: rlx.add: takes 2 operands, given 0"},
        Malformed{"graph g { %0 = concat }", "f.rlx:1:16: rlx.concat: needs at least one operand"},
        Malformed{"graph g { %0: f32[] = input {label=\"x\"}\n%1 = add(%0) }", "f.rlx:2:6: rlx.add: takes 2 operands, given 1"},
        Malformed{"graph g { %0: f32[] = input {label=\"x\"}\n%1 = input(%0) {label=\"y\"} }",
                  "f.rlx:2:6: rlx.input: takes no operands, given 1"},
        Malformed{"graph g { %0: f32[] = input {label=\"x\"}\n%1 = constant(%0) {value=f32[] {1}} }",
                  "f.rlx:2:6: rlx.constant: takes no operands, given 1"},
        Malformed{"graph g { %0 = constant }", "f.rlx:1:16: rlx.constant: has no value"},
        Malformed{"graph g { %0: f32[] = input }", "f.rlx:1:23: graph 'g': an input needs a name"},
        Malformed{"graph g { %0: f32[-1] = input {label=\"x\"} }", "f.rlx:1:25: graph 'g': input 'x': size -1 is negative"},
        Malformed{"graph g { %0: f32[] = input {label=\"x\"} %0: f32[] = input {label=\"y\"} }", "f.rlx:1:41: %0 has a value already"},
        Malformed{"graph g { %0: f32[] = input {label=\"x\"} %1: i8[] = input {label=\"x\"} }",
                  "f.rlx:1:52: graph 'g': input 'x' exists already"},
        Malformed{"graph g { %0.1: f32[] = input {label=\"x\"} }", "f.rlx:1:11: %0.1: a new value has no result number"},
        Malformed{"graph g { %0: f32[] = input {label=\"x\"} output y = %0.1 }", "f.rlx:1:52: %0 has no result 1 (allowed: 0..0)"},
        Malformed{"graph g { %0: f32[] = input {label=\"x\"} output y = %0 output y = %0 }",
                  "f.rlx:1:62: graph 'g': output 'y' exists already"},
        Malformed{"graph g { %0: f32[3] = input {label=\"x\"} %1 = top_k(%0) {k=1} output y = %1 }",
                  "f.rlx:1:74: %1 has 2 results; write %1.0 for the first"},
        Malformed{"graph g { output y = %0 }", "f.rlx:1:22: %0 has no value here"}));

TEST(Text, RuleErrorsCarryThePosition) {
  const std::string head(x_line);
  EXPECT_EQ(error_of(head + "  %1: f32[B,2] = softmax(%0) {axis=4}\n}"),
            "f.rlx:3:18: rlx.softmax: axis 4 is out of range for f32[B,2] (allowed: -2..1)");
  EXPECT_EQ(error_of(head + "  %1: f32[B,3] = abs(%0)\n}"), "f.rlx:3:7: %1: stated f32[B,3], abs gives f32[B,2]");
  EXPECT_EQ(error_of(head + "  %1: f32[B,2], f32[] = abs(%0)\n}"), "f.rlx:3:7: %1: stated 2 result types, abs gives 1");
  EXPECT_EQ(error_of(head + "  %1 = reshape(%0) {shape=[B,C]}\n}"),
            "f.rlx:3:30: symbol 'C' is not declared in the head of the graph (near: 'B')");
}

TEST(Text, AttributeErrorsCarryThePosition) {
  const std::string head(x_line);
  EXPECT_EQ(error_of(head + "%1 = softmax(%0) {axes=1}\n}"),
            "f.rlx:3:19: rlx.softmax has no attribute 'axes' (near: 'axis'; allowed: axis, zero_empty)");
  EXPECT_EQ(error_of(head + "%1 = softmax(%0) {axis=1, axis=1}\n}"), "f.rlx:3:27: attribute 'axis' is given twice");
  EXPECT_EQ(error_of(head + "%1 = softmax(%0) {axis=1.5}\n}"), "f.rlx:3:24: 1.5 is no integer");
  EXPECT_EQ(error_of(head + "%1 = softmax(%0) {axis=[1]}\n}"), "f.rlx:3:24: '[' where a number is needed");
  EXPECT_EQ(error_of(head + "%1 = cast(%0) {to=f33}\n}").substr(0, 58), "f.rlx:3:19: element type 'f33' is unknown (near: 'f32'; al");
  EXPECT_EQ(error_of(head + "%1 = input {label=\"y\", role=weight}\n}"),
            "f.rlx:3:29: role 'weight' is unknown (allowed: input, param, state)");
  EXPECT_EQ(error_of(head + "%1 = reduce(%0) {op=sun}\n}"), "f.rlx:3:21: op 'sun' is unknown (near: 'sum'; allowed: sum, max, min, prod)");
  EXPECT_EQ(error_of(head + "%row = abs(%0)\n%2 = abs(%rows)\n}"), "f.rlx:4:10: %rows has no value here (near: '%row')");
  EXPECT_EQ(error_of(head + "%1 = leaky_relu(%0) {slope=nan \"3ff0000000000000\"}\n}"),
            "f.rlx:3:32: '3ff0000000000000' are not the bits of a NaN");
}

std::string constant_error(std::string_view array) {
  return error_of(fmt::format("graph g(B<=4) {{ %0 = constant {{value={}}} }}", array));
}

TEST(Text, ArraysAreCheckedBeforeMemoryIsTaken) {
  EXPECT_EQ(constant_error("f32[2] {1}"), "f.rlx:1:47: 1 elements, the shape has 2");
  EXPECT_EQ(constant_error("f32[1] {1, 2}"), "f.rlx:1:49: more than the 1 elements of the shape");
  EXPECT_EQ(constant_error("f32[1000000000000] {1}"), "f.rlx:1:57: the text ends before the 1000000000000 elements");
  EXPECT_EQ(constant_error("f32[4294967296,4294967296] {}"),
            "f.rlx:1:38: f32[4294967296,4294967296] has too many elements (allowed: below 2^59)");
  EXPECT_EQ(constant_error("f32[B] {}"), "f.rlx:1:38: an array cannot have the type f32[B]");
  EXPECT_EQ(constant_error("f32[-1] {}"), "f.rlx:1:38: an array cannot have the type f32[-1]");
  EXPECT_EQ(constant_error("f32[1000000000000] bytes \"00\""), "f.rlx:1:63: 2 hexadecimal digits (needed: 8000000000000)");
  EXPECT_EQ(constant_error("i8[1] bytes \"0g\""), "f.rlx:1:50: '0g' are not hexadecimal digits");
  EXPECT_EQ(constant_error("i8[1] {128}"), "f.rlx:1:45: 128 does not fit i8");
  EXPECT_EQ(constant_error("i4[1] {-9}"), "f.rlx:1:45: -9 does not fit i4");
  EXPECT_EQ(constant_error("u8[1] {-1}"), "f.rlx:1:45: '-' where a number is needed");
  EXPECT_EQ(constant_error("bool[1] {1}"), "f.rlx:1:47: '1' where true or false is needed");
  EXPECT_EQ(constant_error("c64[1] {1}"), "f.rlx:1:46: '1' where '(' is needed");
  EXPECT_EQ(constant_error("f32[1] {1e39}").substr(0, 34), "f.rlx:1:46: 1e39 is out of range (");
  EXPECT_EQ(constant_error("f32[1] array \"w\""), "f.rlx:1:51: an array is kept outside of this text, in a graph file");
}

TEST(Text, SizesThatOverflowCarryThePosition) {
  const std::string head(x_line), many = "has too many elements (allowed: below 2^59)";
  EXPECT_EQ(error_of("graph g { %0: f32[4294967296,4294967296] = input {label=\"x\"} }"), "f.rlx:1:15: f32[4294967296,4294967296] " + many);
  EXPECT_EQ(error_of(head + "%1 = broadcast(%0) {shape=[4294967296,4294967296,B,2], axes=[2, 3]}\n}"),
            "f.rlx:3:6: f32[4294967296,4294967296,B,2] " + many);
  EXPECT_EQ(error_of(head + "%1 = iota {shape=[576460752303423488], dtype=i8}\n}"), "f.rlx:3:6: i8[576460752303423488] " + many);
}

TEST(Text, SizesOfTextCannotExhaustTheReader) {
  EXPECT_NE(error_of("graph " + std::string(5000, 'a') + " {}").find("a name or number has 5000 characters (allowed: 1024)"),
            std::string::npos);
  std::string axes = "1";
  for (int i = 0; i < 64; ++i) axes += ",1";
  EXPECT_NE(error_of("graph g { %0: f32[" + axes + "] = input {label=\"x\"} }").find("a shape has more than 64 axes"), std::string::npos);
  EXPECT_NE(error_of("graph g(B<=4) { %0: f32[9223372036854775807*B+1*B] = input {label=\"x\"} }").find("leaves the range of 64-bit"),
            std::string::npos);
  std::string power = "B";
  for (int i = 0; i < 64; ++i) power += "*B";
  EXPECT_NE(error_of("graph g(B<=4) { %0: f32[" + power + "] = input {label=\"x\"} }").find("f.rlx:1:25: a size is a product of too many"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx
