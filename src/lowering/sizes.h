#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rlx/dim.h"

namespace rlx {

/// A size of a launch: a number, or the position of one that depends on the symbols in a program's table.
class Size {
 public:
  Size() = default;
  explicit Size(std::int64_t number) : number_(number) {}
  static Size at(std::size_t position) { return Size(static_cast<std::int64_t>(position), true); }

  /// How many runs of up to so many it is.
  Size in_runs(int run) const {
    Size runs = *this;
    runs.run_ = run;
    return runs;
  }

  /// `values`: SizeTable::values.
  std::int64_t operator()(const std::int64_t* values) const {
    const std::int64_t size = in_table_ ? values[number_] : number_;
    return run_ == 1 ? size : size / run_ + (size % run_ != 0);
  }

 private:
  Size(std::int64_t position, bool in_table) : number_(position), in_table_(in_table) {}

  std::int64_t number_ = 0;
  int run_ = 1;
  bool in_table_ = false;
};

/// The sizes of a program's launches that depend on its symbols. Launches share few of them, so that a run computes all when it begins.
class SizeTable {
 public:
  explicit SizeTable(std::vector<std::string> symbols) : symbols_(std::move(symbols)) {}

  /// Throws InternalError for a symbol that the program does not have.
  Size operator()(const Dim& dim);
  /// All, for these values of the program's symbols. Throws Error when one leaves 64 bits.
  std::vector<std::int64_t> values(const std::vector<std::int64_t>& symbols) const;

 private:
  struct Term {
    std::int64_t coefficient;
    std::vector<std::size_t> symbols;
  };
  std::vector<Term> terms_of(const Dim& dim) const;

  std::vector<std::string> symbols_;
  std::vector<Dim> dims_;
  std::vector<std::vector<Term>> terms_;  // of each of them
};

}  // namespace rlx
