#include "rlx/graph_cache.h"

#include <list>
#include <mutex>
#include <unordered_map>

#include "base/working.h"
#include "ops/control/registered_kernels.h"

namespace rlx {

struct GraphCache::State {
  struct CompiledGraph {
    Graph graph;
    Executable executable;
    std::uint64_t registrations = 0;  // when it was compiled
  };
  using Recent = std::list<CompiledGraph>;  // the one asked for last in front

  Session session;
  std::size_t most = 0;
  std::mutex mutex;
  Recent recent;
  std::unordered_multimap<std::size_t, Recent::iterator> by_hash;

  const Executable* find(std::size_t hash, const Graph& graph, std::uint64_t registered) {
    for (auto [it, end] = by_hash.equal_range(hash); it != end; ++it) {
      if (it->second->registrations != registered || !structurally_equal(it->second->graph, graph)) continue;
      recent.splice(recent.begin(), recent, it->second);
      return &recent.front().executable;
    }
    return nullptr;
  }

  void keep(std::size_t hash, CompiledGraph compiled) {
    recent.push_front(std::move(compiled));
    by_hash.emplace(hash, recent.begin());
    if (recent.size() <= most) return;
    const auto last = std::prev(recent.end());
    std::erase_if(by_hash, [&](const auto& entry) { return entry.second == last; });
    recent.erase(last);
  }
};

GraphCache::GraphCache(Session session, std::int64_t most) : state_(std::make_shared<State>()) {
  if (most < 1) fail("rlx.GraphCache: {} graphs (allowed: 1 and more)", most);
  state_->session = std::move(session);
  state_->most = static_cast<std::size_t>(most);
}

const Session& GraphCache::session() const { return state_->session; }

Executable GraphCache::compile(const Graph& graph) {
  const Working working;
  const std::size_t hash = structural_hash(graph);
  const std::uint64_t registered = registrations();
  {
    const std::scoped_lock lock(state_->mutex);
    if (const Executable* found = state_->find(hash, graph, registered)) return *found;
  }
  const Graph own = graph.snapshot();
  Executable executable = state_->session.compile(own);  // others find theirs meanwhile
  const std::scoped_lock lock(state_->mutex);
  if (const Executable* found = state_->find(hash, graph, registered)) return *found;
  state_->keep(hash, {own, executable, registered});
  return executable;
}

}  // namespace rlx
