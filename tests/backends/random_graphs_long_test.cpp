// Random graphs, compiled with and without fusion and claims.
#include "backends/random_graphs.h"

namespace rlx::test {
namespace {

void run_on_cpu(unsigned begin, unsigned end, bool claims, bool fuse) {
  SessionOptions options;
  options.claims = claims;
  options.fuse = fuse;
  options.cache_folder = "";
  run_seeds(Session(Device::cpu(), options), begin, end, claims);
}

// 2,000 graphs in all; every seed is a different graph, and each mode gets its share.
TEST(RandomGraphs, Default) { run_on_cpu(0, 1000, true, true); }
TEST(RandomGraphs, WithoutClaims) { run_on_cpu(1000, 1500, false, true); }
TEST(RandomGraphs, WithoutFusion) { run_on_cpu(1500, 1900, true, false); }
TEST(RandomGraphs, WithoutBoth) { run_on_cpu(1900, 2100, false, false); }

}  // namespace
}  // namespace rlx::test
