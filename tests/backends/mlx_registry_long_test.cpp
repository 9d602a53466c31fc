// Every registered op on its samples, on MLX's CPU.
#include "backends/mlx_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class EveryOpOnMlx : public MlxTest {};

TEST_F(EveryOpOnMlx, Default) { expect_reference(session()); }

TEST_F(EveryOpOnMlx, Eager) { expect_reference(session_of_mode("eager")); }

/// With composites that MLX computes whole taken apart.
TEST_F(EveryOpOnMlx, WithoutComposites) { expect_reference(session({.claims = false})); }

/// A primitive that is new has to get a row, if only to say why the host computes it.
TEST_F(EveryOpOnMlx, HasARowOrAReason) {
  const Backend& backend = Device::named("mlx:cpu").backend();
  for (const Case& c : all_cases()) {
    if (c.op->kind == OpKind::composite) continue;
    const Graph graph = graph_of(c, false);
    const auto taken = backend.take(graph, {}, {});
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
      if (graph.node(id).op != c.op) continue;
      EXPECT_NE(taken->left_to_host(graph, graph.node(id)), "it has no row") << c.op->name;
    }
  }
}

}  // namespace
}  // namespace rlx::test
