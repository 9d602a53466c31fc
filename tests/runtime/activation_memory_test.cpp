// The arena of whole models: no values that live at the same time share memory, and it is not larger than what lives at once.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/backend.h"
#include "backends/random_graph.h"
#include "models/families/decoder_family.h"
#include "models/layers/encoder.h"
#include "runtime/executable.h"

namespace rlx::test {
namespace {

/// A value of the arena: where it lies, and from which launch to which it is needed, both included.
struct Placed {
  std::int64_t offset = 0, bytes = 0;
  int first = 0, last = 0;
  bool operator==(const Placed&) const = default;
};

/// Found from the launches alone, not from the plan's own lifetimes.
std::vector<Placed> placed_values(const Executable::State& state) {
  std::map<int, Placed> by_slot;
  const auto each = [&](const std::vector<ValueId>& values, int launch) {
    for (ValueId v : values) {
      const int slot = state.slot_of(v);
      const Slot& at = state.memory.at(slot);
      if (at.place != Slot::Place::arena) continue;
      const Type& type = state.program.graph.type(at.value);
      const auto [it, is_new] = by_slot.try_emplace(slot);
      if (is_new) it->second = {state.plan.offsets[at.index], (bytes_for(type.dtype, type.size().upper()) + 63) / 64 * 64, launch, launch};
      it->second.last = launch;
    }
  };
  for (std::size_t l = 0; l < state.program.launches.size(); ++l) {
    each(state.program.launches[l].writes, static_cast<int>(l));
    each(state.program.launches[l].reads, static_cast<int>(l));
  }
  std::vector<Placed> all;
  for (const auto& [slot, value] : by_slot) all.push_back(value);
  return all;
}

bool overlap(const Placed& a, const Placed& b) { return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes; }

/// Values share memory only where one ends with the launch that begins the other, in the very same place.
void expect_apart(const std::vector<Placed>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Placed &a = values[i], &b = values[j];
      if (a.first > b.last || b.first > a.last || !overlap(a, b)) continue;
      const bool handed_on = a.offset == b.offset && a.bytes == b.bytes && (a.first == b.last || b.first == a.last);
      EXPECT_TRUE(handed_on) << "of launches " << a.first << " to " << a.last << " and " << b.first << " to " << b.last;
    }
}

/// What no plan can be smaller than: what one launch reads and writes, and what later ones still need. A result may at best take the place
/// of a value of its size that ends there.
std::int64_t most_needed(const std::vector<Placed>& values, int launches) {
  std::int64_t most = 0;
  for (int l = 0; l < launches; ++l) {
    std::int64_t needed = 0;
    for (const Placed& v : values) {
      if (v.first > l || v.last < l) continue;
      const auto ends_here = [&](const Placed& other) { return other.last == l && other.first < l && other.bytes == v.bytes; };
      if (v.first < l || std::ranges::none_of(values, ends_here)) needed += v.bytes;
    }
    most = std::max(most, needed);
  }
  return most;
}

struct Use {
  std::int64_t arena, needed;
};

Use use_of(const Graph& graph, Precision precision = Precision::f32, bool fuse = true) {
  const SessionOptions options{.fuse = fuse, .precision = precision, .cache_folder = ""};
  const Executable::State state(std::make_shared<Session::State>(Device::cpu(), options), graph,
                                lower_graph(graph, options, cpu::target_of()).program);
  const std::vector<Placed> values = placed_values(state);
  expect_apart(values);
  const Use use{state.plan.bytes, most_needed(values, static_cast<int>(state.program.launches.size()))};
  EXPECT_GE(use.arena, use.needed);
  EXPECT_GE(use.arena, state.plan.live_bytes);
  EXPECT_GE(state.plan.live_bytes, use.needed);
  return use;
}

Graph bert_large() {
  const json::Value sizes = json::parse(R"({"vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
      "intermediate_size": 4096, "max_position_embeddings": 512})",
                                        "sizes");
  const DecoderConfig config = DecoderFamily::find("bert")->read(JsonField(sizes, "sizes"));
  Graph graph("bert-large");
  graph.output("last_hidden_state", encode_text(Flow(graph), config, 1, 512).states.back());
  return graph;
}

TEST(ActivationMemory, OfBertLargeIsWithinATenthOfWhatIsNeededAtOnce) {
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::int8}) {
    const Use use = use_of(bert_large(), precision);
    EXPECT_LE(static_cast<double>(use.arena), 1.1 * static_cast<double>(use.needed)) << static_cast<int>(precision);
  }
}

/// The widest place of a layer: 4096 values a token, and the 1024 whose place their product takes, to which they are added.
TEST(ActivationMemory, ResidualsAreAddedInPlace) {
  constexpr std::int64_t tokens = 512, least = tokens * (4096 + 1024) * 4;
  const Use use = use_of(bert_large());
  EXPECT_GE(use.arena, least);
  EXPECT_LT(use.arena, least + tokens * 64);  // the mask, and what begins at a cache line: nothing of a token's width
}

TEST(ActivationMemory, OfRandomGraphsIsCloseToWhatIsNeededAtOnce) {
  double arena = 0, needed = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph;
    RandomGraph(graph, seed, false, "", Dim::symbol("B", 4)).draw();
    const Use use = use_of(graph, Precision::f32, false);
    arena += static_cast<double>(use.arena);
    needed += static_cast<double>(use.needed);
  }
  EXPECT_LE(arena, 1.1 * needed);
}

}  // namespace
}  // namespace rlx::test
