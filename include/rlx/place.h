#pragma once
#include <functional>
#include <string>

namespace rlx {

/// A line of source text, in any language.
struct SourceLine {
  std::string file;
  int line = 0;
};

/// While it lives, errors of builders on this thread name this line: "..., built at model.py:12". For callers whose lines C++ cannot see.
/// The innermost one counts; it must end on the thread on which it began, before those that are older.
class Place {
 public:
  explicit Place(SourceLine line) : Place([line = std::move(line)] { return line; }) {}
  /// `find` is asked where there is an error, on the same thread.
  explicit Place(std::function<SourceLine()> find);
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place();

 private:
  friend std::string in_call(std::string message);

  std::function<SourceLine()> find_;
  const Place* outer_;
};

}  // namespace rlx
