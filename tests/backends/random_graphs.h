#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "backends/random_graph.h"
#include "ir/rebuild.h"
#include "rlx/error.h"
#include "rlx/session.h"
#include "rlx/text.h"

// Random graphs against the reference.
namespace rlx::test {

inline constexpr unsigned graphs_per_program = 10;  // one compile for several graphs: starting the code generator costs more than a kernel

inline Dim batch_of(unsigned seed) { return seed % 3 == 0 ? Dim::symbol("B", 4) : Dim(static_cast<int>(1 + seed % 4)); }

/// The graphs of seeds first, first + 1, ..., all with the batch size of the first.
inline Graph draw(unsigned first, unsigned count, bool wide, bool has_bf16 = true) {
  Graph graph;
  for (unsigned i = 0; i < count; ++i)
    RandomGraph(graph, first + i, wide, "g" + std::to_string(i) + "_", batch_of(first / graphs_per_program), has_bf16).draw();
  return graph;
}

/// The graph for each slice of its inputs, with the parameters of all.
inline Graph for_each_slice(const Graph& graph) {
  constexpr std::int64_t slices = 3;
  Graph outer;
  Values all, moving;
  for (const auto& [input, value] : graph.inputs()) {
    Input stacked = input;
    if (input.kind == InputKind::input) stacked.type.shape.insert(stacked.type.shape.begin(), slices);
    all.push_back(outer.add_input(std::move(stacked)));
    if (input.kind == InputKind::input) moving.push_back(all.back());
  }
  const auto step = [&](const Values& carry, const Values& at) {
    Values operands = all;
    for (std::size_t i = 0, next = 0; i < operands.size(); ++i)
      if (graph.inputs()[i].first.kind == InputKind::input) operands[i] = at[next++];
    return std::pair(carry, inline_graph(graph, operands));
  };
  const Values results = scan(step, {}, moving, Dim(slices));
  for (std::size_t i = 0; i < results.size(); ++i) outer.output(graph.outputs()[i].first, results[i]);
  return outer;
}

struct Inputs {
  std::map<std::string, Array> narrow, wide;
};

/// Draws the values of one input, the same for both graphs.
inline void draw_input(const Graph& narrow, const Graph& wide, std::size_t i, std::int64_t batch, std::mt19937& random, Inputs& inputs) {
  const Input& input = narrow.inputs()[i].first;
  const Type type = bind_sizes(input.type, {{"B", batch}});
  const Array x = random_array(type, is_bool(type.dtype) ? 0 : -4, is_bool(type.dtype) ? 1 : 4, random);
  Array w(wide.inputs()[i].first.type.dtype, x.shape());
  for (std::int64_t k = 0; k < x.size(); ++k) w.set_double(k, x.get_double(k));
  inputs.narrow[input.name] = x;
  inputs.wide[input.name] = w;
}

inline Inputs draw_inputs(const Graph& narrow, const Graph& wide, unsigned seed, std::int64_t batch) {
  std::mt19937 random(seed);
  Inputs inputs;
  for (std::size_t i = 0; i < narrow.inputs().size(); ++i) draw_input(narrow, wide, i, batch, random, inputs);
  return inputs;
}

/// For each output, the spacing at 1 of the narrowest float that it is computed from.
inline std::vector<double> epsilons(const Graph& graph) {
  std::vector<double> of_node(graph.size(), epsilon(f32));
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(static_cast<std::int32_t>(i));
    for (const Type& type : node.results) of_node[i] = std::max(of_node[i], is_float(type.dtype) ? epsilon(type.dtype) : 0);
    for (ValueId operand : node.operands) of_node[i] = std::max(of_node[i], of_node[static_cast<std::size_t>(operand.node)]);
  }
  std::vector<double> result;
  for (const auto& [name, value] : graph.outputs()) result.push_back(of_node[static_cast<std::size_t>(value.id().node)]);
  return result;
}

/// The distance of two arrays of any float types where both are finite: nothing is allowed for the rest, which must be equal.
inline double distance(const Array& a, const Array& b) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a.get_double(i) - b.get_double(i));
    if (std::isfinite(d)) largest = std::max(largest, d);
  }
  return largest;
}

/// Kernels round in other places than the reference (sums in another order, narrow floats kept in f32 between stores), and the graph
/// amplifies that as it amplifies the reference's own rounding. How much that is, its distance to f64 shows, but as a sample: 20 times
/// as much is allowed, and 8 roundings of the largest value where the reference happened to be right.
inline double allowed(const Array& reference, const Array& exact, double eps) {
  return 20 * distance(reference, exact) + 8 * eps * (1 + largest_magnitude(reference));
}

/// The graph of one seed alone, for the report of a failure.
inline std::string text_of(unsigned seed, unsigned first, bool has_bf16) {
  Graph graph;
  RandomGraph(graph, seed, false, "", batch_of(first / graphs_per_program), has_bf16).draw();
  return to_text(graph);
}

inline void compare(const Graph& graph, const Outputs& seen, const std::vector<Array>& reference, const std::vector<Array>& exact,
                    unsigned first, bool has_bf16) {
  const std::vector<double> eps = epsilons(graph);
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const bool number = is_float(reference[i].dtype());
    const double limit = number ? allowed(reference[i], exact[i], eps[i]) : 0;
    const double d = difference(seen[i], reference[i]);
    if (d <= limit) continue;
    const std::string& name = graph.outputs()[i].first;
    const unsigned seed = first + static_cast<unsigned>(std::stoi(name.substr(1)));
    ADD_FAILURE() << "seed " << seed << ", output " << name << " " << type_of(reference[i]).to_string() << ": off by " << d << " (allowed "
                  << limit << ")\n"
                  << text_of(seed, first, has_bf16);
  }
}

inline Outputs run(const Executable& program, const Graph& graph, const Inputs& inputs) {
  std::map<std::string, Feed> fed;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::input) fed.emplace(input.name, inputs.narrow.at(input.name));
  return program.run(fed);
}

/// Binds the parameters and runs twice: the second run reads what the first one computed of them.
inline Outputs run_twice(Executable& program, const Graph& graph, const Inputs& inputs) {
  std::map<std::string, Array> params;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::param) params.emplace(input.name, inputs.narrow.at(input.name));
  program.set_params(params);
  const Outputs first = run(program, graph, inputs);
  Outputs second = run(program, graph, inputs);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(difference(first[i], second[i]), 0) << graph.outputs()[i].first;
  return second;
}

/// Binds every second parameter to other values, one by one.
inline void rebind_some(Executable& program, const Graph& graph, const Graph& wide, std::int64_t batch, Inputs& inputs) {
  std::mt19937 random(static_cast<unsigned>(graph.size()));
  std::size_t params = 0;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const Input& input = graph.inputs()[i].first;
    if (input.kind != InputKind::param || params++ % 2 == 1) continue;
    draw_input(graph, wide, i, batch, random, inputs);
    program.set_param(input.name, inputs.narrow.at(input.name));
  }
}

/// The seeds `begin` to `end`, or those of RLX_SEEDS ("0-2000"): more than a test has time for.
struct Seeds {
  unsigned begin, end;
};
inline Seeds chosen_or(Seeds otherwise) {
  const char* const text = std::getenv("RLX_SEEDS");
  if (text && std::sscanf(text, "%u-%u", &otherwise.begin, &otherwise.end) != 2) fail("RLX_SEEDS={}: not like 0-2000", text);
  return otherwise;
}

/// What is made of each graph first. A gradient is discontinuous where maxima are, so that it is for graphs without bf16, whose rounding
/// makes numbers equal that were not.
struct Changed {
  Graph (*of)(const Graph&) = nullptr;
  bool has_bf16 = true;
};

/// `claims`: whether there must be some.
inline void run_seeds(const Session& session, unsigned begin, unsigned end, bool claims, Changed changed = {}) {
  std::size_t claimed = 0, prepared = 0;
  for (unsigned first = begin; first < end; first += graphs_per_program) {
    SCOPED_TRACE("seeds from " + std::to_string(first));
    try {
      Graph graph = draw(first, graphs_per_program, false, changed.has_bf16),
            wide = draw(first, graphs_per_program, true, changed.has_bf16);
      if (changed.of) graph = changed.of(graph), wide = changed.of(wide);
      Executable program = session.compile(graph);
      for (const NodeReport& node : program.explain()) claimed += node.how == "claimed", prepared += node.how == "prepared";
      const bool symbolic = !graph.symbols().empty();
      for (std::int64_t batch : symbolic ? std::vector<std::int64_t>{1, 3, 4} : std::vector<std::int64_t>{1}) {
        Inputs inputs = draw_inputs(graph, wide, first + static_cast<unsigned>(batch), batch);
        compare(graph, run_twice(program, graph, inputs), evaluate(graph, inputs.narrow), evaluate(wide, inputs.wide), first,
                changed.has_bf16);
        if (symbolic && batch < 4) continue;
        rebind_some(program, graph, wide, batch, inputs);
        compare(graph, run(program, graph, inputs), evaluate(graph, inputs.narrow), evaluate(wide, inputs.wide), first, changed.has_bf16);
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GE(claimed, claims ? (end - begin) / 10 : 0) << "of " << end - begin << " graphs";
  EXPECT_GE(prepared, changed.of ? 0 : end - begin) << "of " << end - begin << " graphs";
}

}  // namespace rlx::test
