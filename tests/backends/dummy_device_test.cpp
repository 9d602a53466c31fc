// A device whose memory the host cannot read computes what the CPU does.
#include "backends/dummy_device.h"

#include "backends/random_graph.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

Session session() {
  SessionOptions options;
  options.cache_folder = "";
  return Session(dummy_device(), options);
}

TEST(DummyDevice, EveryOp) { expect_reference(session()); }

}  // namespace
}  // namespace rlx::test
