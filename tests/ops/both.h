#pragma once
#include "ops/near.h"
#include "rlx/session.h"

namespace rlx::test {

/// One session for a whole test: equal kernels are compiled once, nothing is kept on disk.
inline const Session& compiling_session() {
  static const Session session(Device::cpu(), {.threads = 1, .cache_folder = std::filesystem::path()});
  return session;
}

/// The results of a function of values, by the reference, which the compiled program must give too: NaN where NaN is, the others within
/// `relative` of themselves.
inline std::vector<Doubles> both_all(const std::vector<Array>& operands, const std::function<Values(const Values&)>& function,
                                     double relative = 0) {
  Graph graph;
  std::vector<Type> types;
  for (const Array& operand : operands) types.push_back(type_of(operand));
  const Values results = function(inputs_for(graph, types));
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  const std::map<std::string, Array> inputs = named(operands);
  const std::vector<Array> wanted = evaluate(graph, inputs);
  std::map<std::string, Feed> feeds;
  for (const auto& [input, value] : graph.inputs()) feeds.emplace(input.name, inputs.at(input.name));
  const Outputs seen = compiling_session().compile(graph).run(feeds);
  std::vector<Doubles> all;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE("compiled result " + std::to_string(i));
    EXPECT_EQ(seen[i].shape(), wanted[i].shape());
    expect_near(values_of(seen[i]), values_of(wanted[i]), relative);
    all.push_back(values_of(wanted[i]));
  }
  return all;
}
inline Doubles both(const std::vector<Array>& operands, const std::function<Value(const Values&)>& function, double relative = 0) {
  return both_all(operands, [&](const Values& x) { return Values{function(x)}; }, relative)[0];
}

}  // namespace rlx::test
