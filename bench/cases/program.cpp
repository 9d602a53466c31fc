#include "cases/program.h"

#include <memory>
#include <utility>

namespace rlx::bench {

Array filled(std::vector<std::int64_t> shape, std::uint32_t seed) {
  Array array(f32, std::move(shape));
  fill(array.mutable_values<float>(), seed);
  return array;
}

Case program_case(const Session& session, const Graph& graph, const std::map<std::string, Array>& inputs, std::vector<std::int64_t> shape) {
  const Executable executable = session.compile(graph);
  const std::map<std::string, Feed> feeds(inputs.begin(), inputs.end());
  const auto out = std::make_shared<Array>(f32, std::move(shape));
  Case one;
  one.run = [executable, feeds, out] { executable.run(feeds, {{"out", out->mutable_values<float>()}}); };
  one.result = [out] { return *out; };
  return one;
}

}  // namespace rlx::bench
