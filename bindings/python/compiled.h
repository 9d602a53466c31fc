#pragma once
#include <atomic>
#include <mutex>
#include <vector>

#include "item.h"
#include "rlx/graph_cache.h"
#include "rlx/host_call.h"
#include "rlx/session.h"

namespace rlx::python {

/// A traced function that is compiled, with the arrays that it captured. Any number of threads may call it.
class Compiled {
 public:
  /// Throws Error where no result has the type of a donated input.
  Compiled(Trace& trace, nb::handle outputs);
  /// The results for an array of each input; these are read until it returns.
  std::vector<Array> operator()(std::vector<Array> inputs) const;
  /// Takes the elements of the arrays whose inputs are donated from those who have them: nobody holds their memory but the call.
  void take_donated(std::span<const nb::object> arrays) const;
  const std::vector<TracedInput>& inputs() const { return inputs_; }
  /// Whether a result takes the element type of what it meets, as numbers of Python do.
  bool is_weak(std::size_t result) const { return weak_[result]; }
  bool has_donated() const { return !donors_.empty(); }
  /// Whether a kernel was registered since it was traced.
  bool is_outdated() const { return registered_ != registrations(); }
  std::string dump(const std::string& stage) const;
  /// Writes a program file, in which the arrays that it captured are parameters.
  void save(const std::filesystem::path& path) const;

 private:
  std::size_t donor_of(const Type& type) const;
  std::vector<Array> run_donated(std::vector<Array> inputs, std::map<std::string, Feed> feeds) const;
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

  std::uint64_t registered_ = registrations();
  GraphCache cache_;  // of the device for which it was compiled
  std::optional<Executable> executable_;
  std::vector<Large> large_;
  std::vector<Tensor> captured_;
  std::vector<TracedInput> inputs_;
  std::vector<bool> weak_;  // by result
  /// An input whose memory a result gets: a state of the executable, which no other function has then.
  struct Donor {
    std::size_t input, result;
    const std::byte* last;  // where the result of the last run lies
  };
  mutable std::vector<Donor> donors_;
  mutable std::mutex turn_;                     // of runs with donors
  mutable std::atomic<bool> is_short_ = false;  // the last run took less than it costs to give the lock to others
};

}  // namespace rlx::python
