#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rlx {

/// The tensor that holds some parameters of a graph. `{e}` in its name stands for the number of an expert: the experts' tensors are
/// stacked to one parameter.
struct WeightName {
  std::vector<std::string> params;  // names, or parts before a dot; several: their rows lie one below the other
  std::string tensor;
  std::int64_t groups = 1;  // of several parameters: the rows come in this many groups, each with a part of every parameter
  bool transposed = false;  // matrices are (in, out)
};

/// How the names in a checkpoint differ from those of a graph's parameters, where they do.
struct WeightNames {
  std::string_view prefix = {};                                             // removed when any name begins with it
  std::vector<std::pair<std::string_view, std::string_view>> endings = {};  // older spellings of the ends of names, and today's
  std::vector<std::string_view> unused = {};  // names, or parts before a dot or after a number, that a file may have and a graph need not
  std::vector<WeightName> whole = {};         // outside of layers
  std::string_view layers = "layers";         // what stands before the number of a layer; parameters say `layers.3.`
  std::vector<WeightName> layer = {};         // behind that number; of two lines for a parameter the last counts
  std::size_t used_layers = 0;                // a file's layers behind so many are of no use; 0: all are of use
};

/// Where a parameter's values lie in a file. Names are spelled as in the tables: without a prefix that the whole file shares.
struct TensorPlace {
  std::vector<std::string> tensors = {};
  bool stacked = false;                    // along a new first axis, even if it is one
  std::vector<std::string> siblings = {};  // the parameters that share the tensor's rows, in order; empty: it is alone
  std::int64_t groups = 1;                 // the rows come in this many groups, each with a part of every sibling
  bool transposed = false;
  bool listed = true;  // by the tables; else the tensor has the parameter's own name
};

/// `experts`: how many a parameter of experts has.
TensorPlace place_of(std::string_view param, std::int64_t experts, const WeightNames& names);

/// Whether the tables say that a file may have the tensor and a graph need not.
bool is_unused(std::string_view name, const WeightNames& names);

}  // namespace rlx
