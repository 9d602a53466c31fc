#pragma once
#include <atomic>
#include <vector>

#include "item.h"
#include "rlx/session.h"

namespace rlx::python {

/// A traced function that is compiled, with the arrays that it captured. Any number of threads may call it.
class Compiled {
 public:
  Compiled(Trace& trace, nb::handle outputs);
  /// The results for an array of each input; these are read until it returns.
  std::vector<Array> operator()(std::vector<Array> inputs) const;
  const std::vector<TracedInput>& inputs() const { return inputs_; }
  std::string dump(const std::string& stage) const;

 private:
  std::vector<Array> run(const std::map<std::string, Feed>& feeds) const;
  void add_result(std::size_t place, const Type& type);
  bool read_captured(std::map<std::string, Feed>& feeds, bool waits) const;

  /// A result that lies in memory of results that are gone.
  struct Large {
    std::size_t place;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::size_t bytes;
  };

  std::optional<Executable> executable_;
  std::vector<Large> large_;
  std::vector<Tensor> captured_;
  std::vector<TracedInput> inputs_;
  mutable std::atomic<bool> is_short_ = false;  // the last run took less than it costs to give the lock to others
};

}  // namespace rlx::python
