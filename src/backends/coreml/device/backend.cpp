#include "backends/coreml/device/backend.h"

#include "backends/coreml/device/taken_graph.h"
#include "backends/found_backends.h"

namespace rlx::coreml {
namespace {

struct CoreMlDevice : Backend {
  CoreMlDevice(Library& from, std::string of) : library(from), units(std::move(of)) {}

  std::string name() const override { return "coreml:" + units; }
  std::string description() const override {
    return fmt::format("{}; takes whole graphs, as packages for iOS {} and macOS of its year", library.title, library.version);
  }
  TargetDevice target(const SessionOptions& options) const override {
    refuse_cpu_level(options, name());
    return {"coreml", {}, 0, {}, nullptr, {}};
  }
  bool takes_graphs() const override { return true; }
  std::unique_ptr<TakenGraph> take(const Graph& graph, const SessionOptions& /*options*/, HostNode on_host) const override {
    return std::make_unique<CoreMlGraph>(graph, library, decoded, units, std::move(on_host));
  }

  Library& library;
  const std::string units;
  mutable DecodedTypes decoded;
};

FoundBackends find() {
  return found_in_library<LibraryEntry>("coreml", library_entry, "Apple's systems alone have CoreML: building RLX there makes it",
                                        [](Library& library, FoundBackends& found) {
                                          for (const std::string& units : library.units)
                                            found.backends.push_back(backend_of(library, units).release());
                                        });
}

}  // namespace

std::unique_ptr<Backend> backend_of(Library& library, std::string units) {
  return std::make_unique<CoreMlDevice>(library, std::move(units));
}
const std::vector<const Backend*>& backends() { return found_once<find>().backends; }
const std::string& missing() { return found_once<find>().missing; }

}  // namespace rlx::coreml
