// The programs of docs/text.md and examples/mlp.rlx, as they stand there: they compute what their comments say.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "ir/reference.h"
#include "rlx/session.h"
#include "rlx/text.h"

namespace rlx {
namespace {

std::string read(const std::string& file) {
  std::ifstream in(fmt::format("{}/../../{}", RLX_FIXTURES, file));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> programs_of(const std::string& document) {
  constexpr std::string_view begin = "```rlx\n", end = "```";
  std::vector<std::string> programs;
  for (std::size_t at = document.find(begin); at != std::string::npos; at = document.find(begin, at)) {
    at += begin.size();
    programs.push_back(document.substr(at, document.find(end, at) - at));
  }
  return programs;
}

/// The array behind "# in x = " and the like.
std::map<std::string, Array> values_of(const std::string& program, const std::string& kind) {
  std::map<std::string, Array> values;
  std::istringstream lines(program);
  const std::string start = fmt::format("# {} ", kind);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(start)) continue;
    const std::size_t sign = line.find(" = ");
    const Graph graph = parse_graph(fmt::format("graph value {{ %v = constant {{value={}}} output v = %v }}", line.substr(sign + 3)), line);
    values.emplace(line.substr(start.size(), sign - start.size()), evaluate(graph, {})[0]);
  }
  return values;
}

Outputs run(const Graph& graph, const std::map<std::string, Array>& values) {
  Executable executable = Session().compile(graph);
  std::map<std::string, Feed> inputs;
  for (const auto& [input, value] : graph.inputs()) {
    const auto given = values.find(input.name);
    if (input.kind == InputKind::param) executable.set_param(input.name, values.at(input.name));
    else if (input.kind == InputKind::input) inputs.emplace(input.name, values.at(input.name));
    else if (given != values.end()) executable.set_state(input.name, given->second);
  }
  return executable.run(inputs);
}

void check(const std::string& program) {
  SCOPED_TRACE(program);
  const Graph graph = parse_graph(program, "program");
  const auto expected = values_of(program, "out");
  ASSERT_EQ(expected.size(), graph.outputs().size());
  const Outputs outputs = run(graph, values_of(program, "in"));
  for (const auto& [name, value] : expected) EXPECT_EQ(outputs.at(name), value) << name;
}

TEST(TextDocument, TenProgramsComputeWhatTheySay) {
  const std::vector<std::string> programs = programs_of(read("docs/text.md"));
  EXPECT_EQ(programs.size(), 10u);
  for (const std::string& program : programs) check(program);
}

TEST(TextDocument, TheExampleComputesWhatItSays) { check(read("examples/mlp.rlx")); }

TEST(TextDocument, NodesOfADerivativeAreMarkedAndStayMarked) {
  const Graph graph = parse_graph(programs_of(read("docs/text.md")).back(), "program");
  const std::string text = to_text(graph);
  EXPECT_NE(text.find(" = mul(%0, %7) backward\n"), std::string::npos) << text;
  EXPECT_EQ(to_text(parse_graph(text, "again")), text);
}

}  // namespace
}  // namespace rlx
