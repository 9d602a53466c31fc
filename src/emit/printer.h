#pragma once
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "emit/emit.h"
#include "emit/scalar_text.h"

namespace rlx {

/// What all dialects share: the walk over the statements of a scheduled kernel, and the arithmetic of sizes and indices.
/// A dialect says how each piece is written. A "value" is text that may be used any number of times.
class KernelPrinter {
 public:
  explicit KernelPrinter(const Kernel& kernel, const ScheduleOptions& options = {})
      : kernel_(kernel), scheduled_(schedule(kernel, options)), values_(kernel.exprs.size()), variables_(kernel.variables.size()) {}
  virtual ~KernelPrinter() = default;
  KernelPrinter(const KernelPrinter&) = delete;
  KernelPrinter& operator=(const KernelPrinter&) = delete;

 protected:
  /// On signed integers of `index_type`, as in C; grid positions are divided as unsigned ones.
  enum class SizeOp : std::uint8_t { add, multiply, divide, remainder, unsigned_divide, unsigned_remainder, subtract, min };
  using LoopBody = std::function<void(const std::string& variable)>;
  /// What is kept across loops for an expression: its accumulator, or its value for each lane of a block or each place of a row; and for a
  /// sum in runs the total of earlier runs, and what their additions rounded off; and the accumulators of a vector's elements.
  struct Kept {
    enum class Part : std::uint8_t { value, total, lost, side };
    Kept(ExprId e, Part p = Part::value) : expr(e), part(p) {}  // NOLINT(google-explicit-constructor): most keep their value alone
    std::string name() const {
      constexpr std::array<std::string_view, 4> parts{"", "_total", "_lost", "_side"};
      return fmt::format("var{}{}", expr, parts[static_cast<std::size_t>(part)]);
    }
    ExprId expr;
    Part part;
  };

  // -- what a dialect defines
  virtual DType index_type() const { return i64; }
  virtual std::string size_op(SizeOp op, const std::string& a, const std::string& b) = 0;
  /// Argument `at` of the kernel's `sizes`.
  virtual std::string size_argument(std::size_t at) = 0;
  /// An integer that was read, as part of an index.
  virtual std::string loaded(const Atom& atom) { return value(atom.id); }
  /// Whether a guard's index is 0, or >= 0; and whether two conditions hold.
  virtual std::string test(Guard::Kind kind, const std::string& index) = 0;
  virtual std::string both(const std::string& a, const std::string& b) = 0;
  /// A loop over low, low + step, ... below high.
  virtual void loop(const std::string& low, const std::string& high, int step, const LoopBody& body) = 0;
  /// A loop of up to so many steps that do not wait for each other.
  virtual void lane_loop(const std::string& low, const std::string& high, int lanes, const LoopBody& body) = 0;
  void lane_loop(int lanes, const LoopBody& body) { lane_loop("0", std::to_string(lanes), lanes, body); }
  /// The position at hand of a kernel that is a block of sums of products.
  virtual void print_product(const ProductBlock& block) { fail_internal("emit: a block of {} sums", block.sums.size()); }
  /// A loop of sums by fours.
  virtual void print_dots(const Statement& /*loop*/) { fail_internal("emit: sums by fours"); }
  // Of groups of lanes: the lane, and which of a block's rows it has; a name for a value that is computed here; what another lane has,
  // whose number differs in these bits; memory that lanes share; where all wait; what is done where a condition holds.
  virtual std::string group_lane() { fail_internal("emit: a group of lanes"); }
  virtual std::string group_row() { fail_internal("emit: rows of a group"); }
  virtual std::string computed(const std::string& /*value*/, DType /*dtype*/) { fail_internal("emit: a value of a group"); }
  virtual std::string exchanged(const std::string& /*value*/, int /*bits*/) { fail_internal("emit: lanes that exchange"); }
  virtual std::string share(const std::string& /*value*/, DType /*dtype*/, int /*warps*/) { fail_internal("emit: memory of a group"); }
  virtual void wait_for_group() { fail_internal("emit: lanes that wait"); }
  virtual void only_if(const std::string& /*condition*/, const std::function<void()>& /*body*/) { fail_internal("emit: some lanes"); }
  virtual std::string less(const std::string& /*a*/, const std::string& /*b*/) { fail_internal("emit: some lanes"); }
  // Of vectors of `count` neighbours in memory: what one of a load has, by name, and an element of it; one that a store will write, what an
  // element of that becomes, and the store.
  virtual std::string load_vector(ExprId /*id*/, int /*count*/, int /*piece_bytes*/) { fail_internal("emit: a vector that is loaded"); }
  virtual std::string element_of(ExprId /*id*/, const std::string& /*vector*/, const std::string& /*at*/) {
    fail_internal("emit: a vector that is loaded");
  }
  virtual std::string vector_to_store(const KernelStore& /*store*/, int /*count*/) { fail_internal("emit: a vector that is stored"); }
  virtual void set_element(const KernelStore& /*store*/, const std::string& /*vector*/, const std::string& /*at*/) {
    fail_internal("emit: a vector that is stored");
  }
  virtual void store_vector(const KernelStore& /*store*/, const std::string& /*vector*/, int /*count*/) {
    fail_internal("emit: a vector that is stored");
  }
  /// Where a loop that holds none is cut in two, so that whole vectors and what is behind them are loops of their own; empty: nowhere.
  virtual std::string cut_of_loop(const std::string& /*low*/, const std::string& /*high*/) const { return {}; }
  virtual std::string compute(ExprId id) = 0;
  virtual void store(const KernelStore& store) = 0;
  /// A variable that lives across loops, whose element `lane` is meant where that is not empty.
  virtual void declare_variable(const Kept& kept, std::int64_t elements) = 0;
  virtual void set_variable(const Kept& kept, const std::string& lane, const std::string& value) = 0;
  virtual std::string variable(const Kept& kept, const std::string& lane) = 0;
  virtual std::string literal(const Expr& constant) = 0;
  /// The accumulator `before` combined with the reduction's body; two accumulators combined.
  virtual std::string combined(const Expr& reduction, const std::string& before) = 0;
  virtual std::string joined(const Expr& reduction, const std::string& a, const std::string& b) = 0;
  /// Loops that add up to so many floats are written out.
  virtual int most_written_out() const { return 0; }
  /// `a` + or - `b`, rounded as it stands.
  virtual std::string rounded(ScalarOp op, const std::string& a, const std::string& b, DType dtype) = 0;
  /// `value`, or `instead` where that is NaN.
  virtual std::string unless_nan(const std::string& value, const std::string& instead, DType dtype) = 0;

  // -- what they get
  void print_block(const Block& block);
  /// The grid positions begin..end-1, or for a tile kernel its loops.
  void print_body(const std::string& begin, const std::string& end);
  /// One position of the grid.
  void print_position(const std::string& flat);
  void set_loop(int loop, const std::string& at) { variables_[static_cast<std::size_t>(loop)] = at; }
  const std::string& loop_at(int loop) const { return variables_[static_cast<std::size_t>(loop)]; }
  const std::string& first_of_block() const { return block_range_.first; }
  void set_value(ExprId id, const std::string& text) { values_[static_cast<std::size_t>(id)] = text; }
  /// A size. Those of symbols are computed once, in `entry_`.
  std::string dim(const Dim& d);
  std::string index(const Index& i);
  std::string sum(const std::string& a, const std::string& b);
  std::string guards(const std::vector<Guard>& list);
  const std::string& value(ExprId id);
  /// The start value of a reduction's accumulator.
  std::string neutral(const Expr& reduction) { return literal(neutral_of(reduction.reduce, reduction.dtype)); }
  static bool adds_floats(const Expr& reduction);
  const KernelBuffer& buffer(int id) const { return kernel_.buffers[static_cast<std::size_t>(id)]; }
  /// Number of size arguments: the symbols, and for a tile kernel begin and end of every loop, by variable.
  std::size_t size_arguments() const { return kernel_.symbols.size() + (kernel_.tile ? 2 * kernel_.loops.size() : 0); }

  const Kernel& kernel_;
  Scheduled scheduled_;
  std::string entry_, body_;  // statements that run once, and those under way
  bool in_order_ = false;     // what is added at hand has the order of the text
  bool written_out_ = false;  // so does the loop at hand

 private:
  void print(const Statement& statement);
  void print_store(int number);
  std::pair<std::string, std::string> range(int variable);
  std::string symbol(const std::string& name);
  std::string runs(const std::string& size, int step);
  std::string times(const std::string& a, const std::string& b);
  std::string divided(SizeOp op, const std::string& a, const std::string& b);
  std::string atom(const Atom& a);
  void print_blocks(const Statement& s);
  void print_compute(const Statement& s);
  void print_loop(const Statement& s);
  void print_lanes(const Statement& s, const std::function<void()>& body);
  void print_runs(const Statement& s);
  void print_run(const Statement& s, const std::string& low, const std::string& high, bool whole);
  bool print_unrolled(const Statement& s);
  bool print_written_out(const Statement& s);
  std::vector<ExprId> added_floats(const Block& body) const;
  std::int64_t known_steps(int variable) const;
  /// A step of a loop, by its number.
  using Step = std::function<void(int)>;
  void print_pairs(const std::vector<ExprId>& reductions, int first, int past, const Step& step);
  void print_steps(const Block& body, int count, const Step& step);
  std::vector<std::string> take_accumulators(const std::vector<ExprId>& reductions);
  void add_to_accumulators(const std::vector<ExprId>& reductions, const std::vector<std::string>& before);
  void print_vectors(const Statement& s);
  void print_shared(const Statement& s);
  void print_neighbours(const Statement& s, const std::string& first, const std::string& slot);
  void find_vectors(const Statement& s);
  void print_short_loop(const Statement& s);
  void print_counted_together(const Statement& s);
  void take_row_of_group();
  void store_of_group(const KernelStore& s);
  std::string combined_over_group(const Expr& reduction, std::string value);
  void combine_sides(const std::vector<ExprId>& reductions, int width);
  /// Where an accumulator takes the next value.
  std::pair<Kept, std::string> accumulator(ExprId id) const;
  bool per_lane(ExprId id) const { return scheduled_.per_lane.count(id) > 0; }
  bool in_runs(ExprId id) const { return scheduled_.in_runs.count(id) > 0; }
  void declare(ExprId id, std::int64_t elements);
  void begin(ExprId id);
  void set(const Kept& kept, const std::string& value);
  void carry(ExprId id);
  std::string reduced(ExprId id);
  void finish_reductions(int variable);

  std::vector<std::string> values_, variables_;
  std::map<std::string, std::string> dims_;
  std::vector<ExprId> open_reductions_;
  std::set<ExprId> declared_;
  std::pair<std::string, std::string> split_range_, block_range_;
  struct Run {
    std::string low, high;
    std::int64_t steps;  // 0: not known
  };
  std::map<int, Run> runs_;                       // by variable: the run at hand
  std::string lane_;                              // position in the block at hand
  std::string side_;                              // element of the vector at hand
  std::set<ExprId> sided_;                        // reductions with accumulators of a vector's elements
  std::string side_of_group_;                     // element of the vector at hand, of a group's lane
  std::int64_t slots_ = 0;                        // of what a lane of a group keeps in the loop at hand
  std::string slot_;                              // place of what a lane of a group keeps
  std::string own_row_;                           // whether the row of a group is there; empty: it is
  bool in_shared_ = false;                        // in a loop that the lanes of a group share
  bool stored_ = false;                           // all lanes of a group wait since the last thing that they did
  std::map<ExprId, std::string> loaded_vectors_;  // at hand
  std::map<int, std::string> put_off_;            // stores at hand whose values are kept until a vector is computed, by number
  std::set<int> together_;                        // variables of loops that are counted together
};

}  // namespace rlx
