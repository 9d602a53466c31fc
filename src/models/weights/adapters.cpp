#include "models/weights/adapters.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "base/names.h"
#include "models/weights/tensor_names.h"
#include "rlx/error.h"

namespace rlx {

/// The changes of one parameter in one adapter.
struct Adapters::Found {
  ParamChange form;  // what the parameter is where the adapter was made
  TensorPlace place = {};
  std::vector<std::string> tensors = {};           // in the file, of each of the place's tensors; empty where there is no change
  std::vector<const LowRankChange*> changes = {};  // of the same; null where there is none

  bool any() const {
    return std::any_of(changes.begin(), changes.end(), [](const LowRankChange* change) { return change != nullptr; });
  }
  std::int64_t rank() const {
    std::int64_t rank = 0;
    for (const LowRankChange* change : changes)
      if (change != nullptr) rank = std::max(rank, change->rank());
    return rank;
  }
};

namespace {

/// Rows of a matrix, or of each of several that are stacked.
struct Rows {
  std::int64_t stacked, rows, columns;

  static Rows of(std::span<const std::int64_t> shape) { return {shape.size() == 3 ? shape[0] : 1, shape[shape.size() - 2], shape.back()}; }
  static Rows of(const Array& array) { return of(array.shape()); }
  std::int64_t at(std::int64_t index, std::int64_t row, std::int64_t column) const { return (index * rows + row) * columns + column; }
};

void copy_values(const Array& from, std::int64_t first, Array& to, std::int64_t at, std::int64_t count) {
  if (from.dtype() != to.dtype()) {
    for (std::int64_t i = 0; i < count; ++i) to.set_double(at + i, from.get_double(first + i));
    return;
  }
  const std::size_t size = from.bytes().size() / static_cast<std::size_t>(from.size());
  const auto bytes = [&](std::int64_t values) { return static_cast<std::size_t>(values) * size; };
  std::memcpy(to.mutable_bytes().data() + bytes(at), from.bytes().data() + bytes(first), bytes(count));
}

/// Copies `from`, one matrix or several that are stacked, into the matrices of `to` from the one at `index` on, each at a place.
void put(const Array& from, Array& to, std::int64_t index, std::int64_t row, std::int64_t column) {
  const Rows source = Rows::of(from), target = Rows::of(to);
  for (std::int64_t i = 0; i < source.stacked; ++i)
    for (std::int64_t r = 0; r < source.rows; ++r)
      copy_values(from, source.at(i, r, 0), to, target.at(index + i, row + r, column), source.columns);
}

using Order = std::function<std::int64_t(std::int64_t at)>;

/// The matrix whose rows and columns are those of `from` in another order; none: as they are.
Array reordered(const Array& from, const Order& row, const Order& column) {
  if (!row && !column) return from;
  const Rows matrix = Rows::of(from);
  Array result(from.dtype(), from.shape());
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t c = 0; c < matrix.columns; ++c)
      copy_values(from, matrix.at(0, row ? row(r) : r, column ? column(c) : c), result, matrix.at(0, r, c), 1);
  return result;
}

bool is_plain(DType dtype) { return dtype == f32 || dtype == bf16 || dtype == f16; }

constexpr std::string_view factor_ending = ".lora_a", rows_ending = ".lora_rows";

std::map<std::string, Type> types_of_params(const Graph& graph) {
  std::map<std::string, Type> types;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::param) types.emplace(input.name, input.type);
  return types;
}

}  // namespace

void Adapters::add(AdapterFile file, double scale, AdapterNames names) {
  std::vector<std::string_view> tensors;
  for (const auto& [tensor, change] : file.changes) tensors.push_back(tensor);
  auto spelled = spelled_names(tensors, names.names);
  sources_.push_back(std::make_shared<const Source>(Source{std::move(file), scale, std::move(names), std::move(spelled)}));
}

Adapters::Found Adapters::find(const Source& source, std::string_view param, MatrixUse use, std::int64_t experts) {
  Found found{.form = source.names.changes ? source.names.changes(std::string(param)) : ParamChange{.param = std::string(param)}};
  found.place = place_of(found.form.param, experts, source.names.names);
  for (const std::string& tensor : found.place.tensors) {
    const auto spelled = source.spelled.find(tensor);
    const LowRankChange* change = spelled != source.spelled.end() ? &source.file.changes.at(spelled->second) : nullptr;
    if (change != nullptr && change->embedding != (use == MatrixUse::lookup)) change = nullptr;
    found.tensors.push_back(change != nullptr ? spelled->second : std::string());
    found.changes.push_back(change);
  }
  return found;
}

LowRankForm Adapters::form_of(std::string_view param, MatrixUse use, std::int64_t experts) const {
  LowRankForm form;
  for (const auto& source : sources_) {
    const Found found = find(*source, param, use, experts);
    if (!found.any()) continue;
    // One adapter's factors stay as they are stored; those of several, and those of experts, are joined in f32.
    const LowRankChange& change =
        **std::find_if(found.changes.begin(), found.changes.end(), [](const auto* each) { return each != nullptr; });
    const bool as_stored =
        form.rank == 0 && use != MatrixUse::expert_products && change.a.dtype() == change.b.dtype() && is_plain(change.a.dtype());
    form.dtype = as_stored ? change.a.dtype() : f32;
    form.rank += found.rank();
  }
  return form;
}

LowRankForms Adapters::forms() const {
  if (sources_.empty()) return {};
  return
      [adapters = *this](const std::string& param, MatrixUse use, std::int64_t experts) { return adapters.form_of(param, use, experts); };
}

/// Gives values to the parameters of one graph.
class Adapters::Loader {
 public:
  Loader(const Adapters& adapters, const Graph& graph) : adapters_(adapters), graph_(graph), types_(types_of_params(graph)) {}

  /// What does not fit is refused before anything takes memory: thin factors of a small file may ask for a lot.
  NamedArrays load() {
    std::vector<Factors> all;
    for (const auto& [name, type] : types_)
      if (name.ends_with(rows_ending) || name.ends_with(factor_ending)) all.push_back(factors_of(name, type));
    for (const Factors& each : all) for_each_change(each, [&](const Change& change) { note_differences(change, each); });
    for (const auto& source : adapters_.sources_) refuse_differences(*source);
    NamedArrays arrays;
    for (const Factors& each : all) add(each, arrays);
    return arrays;
  }

 private:
  /// The parameters of one matrix's changes.
  struct Factors {
    std::string param;  // the matrix
    MatrixUse use;
    std::int64_t experts;
    std::string a, b, scale;  // names
  };
  /// One tensor's change in one adapter, behind those of other adapters, which have `rank` in all.
  struct Change {
    const Source& source;
    const Found& found;
    std::size_t index;
    std::int64_t rank;

    const LowRankChange& values() const { return *found.changes[index]; }
  };

  static Factors factors_of(const std::string& name, const Type& type) {
    const std::string stem = name.substr(0, name.rfind('.'));
    const bool stacked = type.shape.size() == 3;
    const MatrixUse use = stacked ? MatrixUse::expert_products : name.ends_with(rows_ending) ? MatrixUse::lookup : MatrixUse::product;
    return {stem + ".weight", use, stacked ? type.dim(0).value() : 0, name, stem + ".lora_b", stem + ".lora_scale"};
  }

  template <class Visit>
  void for_each_change(const Factors& of, const Visit& visit) const {
    std::int64_t rank = 0;
    for (const auto& source : adapters_.sources_) {
      const Found found = find(*source, of.param, of.use, of.experts);
      for (std::size_t i = 0; i < found.changes.size(); ++i)
        if (found.changes[i] != nullptr) visit(Change{*source, found, i, rank});
      rank += found.rank();
    }
  }

  void add(const Factors& of, NamedArrays& arrays) const {
    Array a = zeros(of.a), b = zeros(of.b), scale = zeros(of.scale);
    for_each_change(of, [&](const Change& change) { put_change(change, a, b, scale); });
    arrays.emplace(of.a, std::move(a));
    arrays.emplace(of.b, std::move(b));
    arrays.emplace(of.scale, std::move(scale));
  }

  std::vector<std::int64_t> shape_of(const std::string& param) const {
    std::vector<std::int64_t> shape;
    for (const Dim& size : types_.at(param).shape) shape.push_back(size.value());
    return shape;
  }

  Array zeros(const std::string& param) const { return {types_.at(param).dtype, shape_of(param)}; }

  void note_differences(const Change& of, const Factors& factors) {
    const LowRankChange& change = of.values();
    const std::string& tensor = of.found.tensors[of.index];
    used_[&of.source].insert(tensor);
    if (is_torn(of.source, of.found)) {
      unlike_[&of.source].push_back(fmt::format("the model has a part of {} transposed, head by head", quote_name(tensor)));
      return;
    }
    const std::vector<std::int64_t> a_shape = shape_of(factors.a), b_shape = shape_of(factors.b);
    const Rows a = Rows::of(a_shape), b = Rows::of(b_shape);
    const RowRange range = range_of(graph_, of.found.form.param, b.rows, of.found.place);
    const bool whole_stack = b_shape.size() == 3 && !of.found.place.stacked;
    const std::int64_t stacked = whole_stack ? b.stacked : 1, inputs = change.embedding ? a.rows : a.columns;
    if (change.stacked() != whole_stack || !has_shape(change, stacked, inputs, range.of))
      unlike_[&of.source].push_back(fmt::format("{} changes a matrix ({}, {}), the model's is ({}, {})", quote_name(tensor),
                                                Rows::of(change.b).rows,
                                                change.embedding ? Rows::of(change.a).rows : change.a.shape().back(), range.of, inputs));
  }

  void put_change(const Change& of, Array& a, Array& b, Array& scale) const {
    const LowRankChange& change = of.values();
    const Rows target = Rows::of(b);
    const RowRange range = range_of(graph_, of.found.form.param, target.rows, of.found.place);
    const auto first = static_cast<std::int64_t>(of.index);
    const Array own = change.stacked() ? change.b : rows_of(change.b, range);
    put(reordered(change.a, {}, of.found.form.column), a, first, change.embedding ? 0 : of.rank, change.embedding ? of.rank : 0);
    put(reordered(own, of.found.form.row, {}), b, first, 0, of.rank);
    for (std::int64_t i = 0; i < Rows::of(change.b).stacked; ++i)
      for (std::int64_t r = 0; r < change.rank(); ++r)
        scale.set_double((first + i) * target.columns + of.rank + r, change.scale * of.source.scale);
  }

  /// True where a part of what the adapter has as one matrix is other than by rows and columns: the keys of latent attention by feature.
  static bool is_torn(const Source& source, const Found& found) {
    return found.form.turned_rows != 0 ||
           (source.names.changes && std::any_of(found.place.siblings.begin(), found.place.siblings.end(), [&](const std::string& sibling) {
              return source.names.changes(sibling).turned_rows != 0;
            }));
  }

  static bool has_shape(const LowRankChange& change, std::int64_t stacked, std::int64_t inputs, std::int64_t outputs) {
    const Rows a = Rows::of(change.a), b = Rows::of(change.b);
    return b.stacked == stacked && b.rows == outputs && (change.embedding ? a.rows : a.columns) == inputs;
  }

  void refuse_differences(const Source& source) {
    std::vector<std::string> unknown;
    for (const auto& [tensor, change] : source.file.changes)
      if (!used_[&source].contains(tensor)) unknown.push_back(tensor);
    std::string text = unknown.empty() ? "" : fmt::format("; the model has no product with {}", some_names(unknown));
    for (const std::string& each : unlike_[&source]) text += fmt::format("; {}", each);
    if (!text.empty()) fail("{}: the adapter does not fit: {}", source.file.name, text.substr(2));
  }

  const Adapters& adapters_;
  const Graph& graph_;
  std::map<std::string, Type> types_;
  std::map<const Source*, std::set<std::string>> used_;
  std::map<const Source*, std::vector<std::string>> unlike_;
};

NamedArrays Adapters::load(const Graph& graph) const { return sources_.empty() ? NamedArrays() : Loader(*this, graph).load(); }

}  // namespace rlx
