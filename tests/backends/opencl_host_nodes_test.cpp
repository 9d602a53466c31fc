// What OpenCL devices leave to the CPU, of all samples of all ops.
#include <set>

#include "backends/opencl_device.h"
#include "backends/registry_samples.h"
#include "runtime/executable.h"

namespace rlx::test {
namespace {

class OpenClHostNodes : public OpenClTest {};

/// The ops that the program leaves to the host, in its regions too.
void add_host_nodes(const Program& program, std::set<std::string>& into) {
  for (const Launch& launch : program.launches)
    if (launch.kind == Launch::Kind::host && !program.views.contains(launch.writes[0])) into.insert(launch.name);
  for (const auto& [region, inner] : program.regions) add_host_nodes(*inner, into);
}

bool has_all_types(const Graph& graph, const Caps& caps) {
  for (std::size_t id = 0; id < graph.size(); ++id)
    for (const Type& type : graph.node(static_cast<std::int32_t>(id)).results)
      if (!caps.has(type.dtype)) return false;
  return true;
}

/// Of graphs whose types the device has.
std::set<std::string> left_to_the_host(const Backend& device) {
  const SessionOptions options;
  const TargetDevice target = device.target(options);
  std::set<std::string> found;
  for (const Case& c : all_cases())
    if (const Graph graph = graph_of(c, false); has_all_types(graph, target.caps))
      add_host_nodes(lower_graph(graph, options, target).program, found);
  return found;
}

TEST_F(OpenClHostNodes, AreFew) {
  const std::set<std::string> known{"cholesky",
                                    "lu",
                                    "triangular_solve",
                                    "linear_recurrence",  // each row or element needs those before it
                                    "fft",
                                    "rfft",
                                    "irfft",          // factors of lengths are found by the CPU's plans
                                    "decode_blocks",  // tables of codes, which kernels do not hold
                                    "host_call",      // a function of the host
                                    "pow"};           // of c128: in more digits than f64 has
  for (const std::string& op : left_to_the_host(backend())) EXPECT_TRUE(known.contains(op)) << op;
}

}  // namespace
}  // namespace rlx::test
