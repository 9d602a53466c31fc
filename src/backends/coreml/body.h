#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backends/coreml/tensors.h"
#include "backends/coreml/weight_file.h"

namespace rlx::coreml {

/// Versions of iOS, and of macOS and the others of the same years, by what they read.
enum class Target : std::uint8_t { ios16 = 16, ios17 = 17, ios18 = 18, ios26 = 26 };

/// A value that is the same in every run, and large.
struct Weight {
  Array array;
  std::string blocks;  // the type of the blocks that it is in; empty: it is in floats
  std::string name;    // for errors
};

/// How a weight is stored otherwise than it was given: in blocks, or as f16. Its error is known once it is written.
struct StoredWeight {
  void add(float given, float stored) {
    const double error = static_cast<double>(stored) - given;
    error_squares += error * error, squares += static_cast<double>(given) * given;
  }

  std::string name, type, form;
  std::int64_t values = 0;
  double bits = 0;                        // of a weight
  bool rounds_decoded = false;            // of blocks: a product takes what is decoded as f16
  double error_squares = 0, squares = 0;  // sums over all values: (stored - given)^2, given^2
};

/// What is one for a whole program: names that are taken, the weights, and who can read it.
struct ProgramParts {
  /// A name like `wanted`, of letters, digits and _, that nothing else of the function has.
  std::string name(std::string_view wanted);
  /// Names are those of a function.
  void begin_function() {
    taken_.clear();
    symbols.clear();
  }
  /// Throws Error where the program may not ask for so much; `what` does.
  void needs(Target least, std::string_view what);
  /// That of an array which is stored in such elements: `first`, where there is none.
  std::shared_ptr<StoredWeight> report(const Array& array, Element element, const StoredWeight& first);

  Weights weights;
  Target target = Target::ios17;                                     // whose operations the program has
  bool target_is_given = false;                                      // else it is as low as the operations allow
  bool multiplies_f16 = false;                                       // else products are of f32
  bool nests_scales = false;                                         // scales of blocks that have two levels keep these
  std::map<std::string, std::string, std::less<>> block_types = {};  // what types of blocks become; "": all others
  std::map<std::string, std::shared_ptr<StoredWeight>> stored_weights = {};
  std::map<std::string, Array> requantized = {};
  std::map<std::string_view, std::map<std::string, std::int64_t>> kept_f32 = {};  // ops, and how many of each, by why they are not f16
  std::map<std::string, Tensor, std::less<>> symbols = {};  // of the function: the sizes that its inputs have in a run, [1] of i32

 private:
  std::set<std::string, std::less<>> taken_;
};

/// What an operation reads: values by name (several where it takes a list), or one that stands there.
using Argument = std::variant<Tensor, Tensors, Immediate>;
using Arguments = std::vector<std::pair<std::string_view, Argument>>;

/// Operations in the order in which they run: a function, or a block inside an operation.
class Body {
 public:
  explicit Body(ProgramParts& parts) : parts_(parts) {}
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  virtual ~Body() = default;

  ProgramParts& parts() const { return parts_; }
  /// An operation of MIL with one result.
  Tensor add(std::string_view type, const Arguments& arguments, Element element, Dims shape);
  /// One with several results or none, or with blocks.
  Tensors add_all(std::string_view type, const Arguments& arguments, Tensors results, const std::vector<ProtobufWriter>& blocks = {});
  /// The value under a name of `ProgramParts::name`.
  Tensor named(const Tensor& value, std::string name);
  /// Elements as `carried` gives them; large ones of floats lie in the file of weights, where errors call them `name`.
  Tensor constant(const Array& array, const std::string& name = "a constant");
  /// Floats as f32 or f16.
  Tensor constant(const Array& array, Element element, const std::string& name);
  /// 8-bit integers, in the file of weights.
  Tensor codes(const Array& array);
  /// A Value whose elements the file of weights has under a key; `source` gives them where it is new.
  ProtobufWriter in_file(const std::string& key, Element element, const Sizes& shape, Weights::Source source) const;
  /// What a Value holds.
  Tensor stored(const ProtobufWriter& value, Element element, const Sizes& shape);
  Tensor constant(const Sizes& shape, const Sizes& integers);

  /// What `make` gives for the first time under a key: for values that several operations of the body share.
  template <class Make>
  const Tensors& made_once(const std::string& key, const Make& make) {
    const auto known = made_.find(key);
    return known != made_.end() ? known->second : made_.emplace(key, make()).first->second;
  }

  /// The block with these inputs and outputs.
  ProtobufWriter block(const Tensors& inputs, const Tensors& outputs) const;

 private:
  ProgramParts& parts_;
  ProtobufWriter operations_;
  std::map<std::string, Tensors> made_;
};

}  // namespace rlx::coreml
