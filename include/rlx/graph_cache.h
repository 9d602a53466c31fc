#pragma once
#include <memory>

#include "rlx/session.h"

namespace rlx {

/// The compiled graphs of a session, found again by their structure: for graphs that are built anew each time they are needed. Those
/// that were not asked for the longest are forgotten. Copies share everything; any number of threads may use it.
class GraphCache {
 public:
  struct State;
  /// Throws Error unless `most` graphs is at least 1.
  explicit GraphCache(Session session = Session(), std::int64_t most = 1024);

  /// An executable of a graph with this structure, whose states and parameters are shared by all who ask for it. Throws Error as
  /// Session::compile.
  Executable compile(const Graph& graph);
  const Session& session() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace rlx
