// Matching the tensors of a checkpoint with the parameters of a graph.
#include "models/weights/weights.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/cpu_count.h"
#include "base/files/mapped_file.h"
#include "base/names.h"
#include "base/progress.h"
#include "base/thread_pool.h"
#include "models/weights/tensor_names.h"
#include "quant/block_format.h"

namespace rlx {
namespace {

Array converted(const Array& from, DType dtype) {
  if (from.dtype() == dtype) return from;
  Array result(dtype, from.shape());
  if (from.dtype() == bf16 && dtype == f32) {  // the common case: a bf16 is the upper half of an f32
    const auto to = result.mutable_values<float>();
    for (std::size_t i = 0; i < to.size(); ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, from.bytes().data() + 2 * i, 2);
      to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
    }
    release_mapped_pages(from.bytes());
    return result;
  }
  for (std::int64_t i = 0; i < from.size(); ++i) result.set_double(i, from.get_double(i));
  release_mapped_pages(from.bytes());
  return result;
}

/// Makes the rows of a tensor that has no data. `bytes` hold all of them.
void make_rows(const TensorView& tensor, std::span<std::byte> bytes, ThreadPool& pool) {
  constexpr std::int64_t rows_at_once = 64;  // of the layouts, so that what lies in one cache line is read at one time
  const std::int64_t rows = row_count(tensor);
  const std::size_t row = bytes.size() / static_cast<std::size_t>(std::max<std::int64_t>(rows, 1));
  pool.parallel_for(rows, rows_at_once, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t first = begin; first < end; first += rows_at_once)
      tensor.make_rows(first, std::min(rows_at_once, end - first), bytes.data() + static_cast<std::size_t>(first) * row);
  });
}

/// Tells how many of the parameters are loaded, and that all are, also where an Error ends it.
struct LoadingReport {
  explicit LoadingReport(std::size_t of) : total(of) {}
  LoadingReport(const LoadingReport&) = delete;
  LoadingReport& operator=(const LoadingReport&) = delete;
  ~LoadingReport() { report_progress("loading", total, total); }
  void count() { report_progress("loading", done++, total); }
  std::size_t total, done = 0;
};

class WeightLoader {
 public:
  WeightLoader(const Graph& graph, const Checkpoint& checkpoint, const WeightNames& names, int threads)
      : graph_(graph), checkpoint_(checkpoint), names_(names), threads_(threads), spelled_(spelled_names(checkpoint.names(), names)) {}

  NamedArrays load(NamedArrays weights) {
    LoadingReport report{graph_.inputs().size()};
    for (const auto& [input, value] : graph_.inputs()) {
      report.count();
      if (input.kind != InputKind::param || weights.contains(input.name)) continue;
      const TensorPlace place = place_of(input.name, first_size(input), names_);
      if (find(place)) weights.emplace(input.name, place.stacked ? stack(input, place) : one(input, place));
    }
    check_tensors(checkpoint_, spelled_, wanted_, names_);
    return weights;
  }

 private:
  /// Notes the tensors as wanted; whether all are there.
  bool find(const TensorPlace& place) {
    wanted_.insert(place.tensors.begin(), place.tensors.end());
    return std::all_of(place.tensors.begin(), place.tensors.end(), [&](const std::string& tensor) { return spelled_.contains(tensor); });
  }

  /// A tensor that must have `rows` rows where the parameter has its own, in the parameter's element type.
  Array tensor(const std::string& spelled, const Input& input, Dims shape, bool transposed) {
    const std::string& name = spelled_.at(spelled);
    const TensorView& view = checkpoint_.at(name);
    const bool turned = transposed && !view.make_rows;  // made matrices are (out, in)
    if (turned && shape.size() == 2) std::swap(shape[0], shape[1]);
    if (input.type.dtype == u8) return blocks(view, shape);
    if (!same_but_for_axes(view.shape, shape) || !is_float(view.dtype)) {
      fail("{}: tensor {} is {}, but the model's config asks for {}", checkpoint_.name(), quote_name(name),
           type_text(view.dtype, view.shape), Type{input.type.dtype, shape}.to_string());
    }
    Array array = elements(view);
    std::vector<std::int64_t> sizes;
    for (const Dim& size : shape) sizes.push_back(size.value());
    if (array.shape() != sizes) array = Array(array.dtype(), sizes, array.bytes(), array.owner());
    return turned && shape.size() == 2 ? transposed_matrix(array) : array;
  }

  Array elements(const TensorView& view) {
    return view.make_rows && !is_packed(view) ? made(view, view.dtype, view.shape) : checkpoint_.array(view.name);
  }

  /// A tensor that has no data. Parameters that share one follow each other, and get parts of the same array.
  Array made(const TensorView& view, DType dtype, const std::vector<std::int64_t>& shape) {
    if (last_made_.first == view.name && last_made_.second.dtype() == dtype) return last_made_.second;
    Array rows(dtype, shape);
    if (!pool_) pool_.emplace(threads_ > 0 ? threads_ : granted_cpus());
    make_rows(view, rows.mutable_bytes(), *pool_);
    last_made_ = {view.name, rows};
    return rows;
  }

  /// The bytes of a tensor of rows of blocks, (..., bytes).
  Array blocks(const TensorView& view, const Dims& shape) {
    std::vector<std::int64_t> sizes;
    for (const Dim& size : shape) sizes.push_back(size.value());
    const auto bytes = checked_product(sizes);
    if (view.shape.size() != sizes.size() || !std::equal(sizes.begin(), sizes.end() - 1, view.shape.begin()) || !bytes ||
        static_cast<std::int64_t>(byte_count(view)) != *bytes)
      fail("{}: tensor {} is {}, but the model's config asks for {}, the last of bytes", checkpoint_.name(), quote_name(view.name),
           type_text(view.dtype, view.shape), Type{u8, shape}.to_string());
    if (view.make_rows) return made(view, u8, sizes);
    if (is_packed(view) || reinterpret_cast<std::uintptr_t>(view.data.data()) % sizeof(float) == 0)
      return {u8, sizes, view.data, checkpoint_.owner_of(view.name)};
    Array aligned(u8, sizes);
    std::memcpy(aligned.mutable_bytes().data(), view.data.data(), view.data.size());
    return aligned;
  }

  Array one(const Input& input, const TensorPlace& place) {
    const RowRange range = range_of(graph_, input.name, first_size(input), place);
    Dims shape = input.type.shape;
    if (!shape.empty()) shape[0] = range.of;
    return converted(rows_of(tensor(place.tensors[0], input, shape, place.transposed), range), input.type.dtype);
  }

  Array stack(const Input& input, const TensorPlace& place) {
    std::vector<std::int64_t> shape;
    for (const Dim& size : input.type.shape) shape.push_back(size.value());
    Array result(input.type.dtype, shape);
    const Dims each(input.type.shape.begin() + 1, input.type.shape.end());
    const std::size_t bytes = result.bytes().size() / place.tensors.size();
    for (std::size_t i = 0; i < place.tensors.size(); ++i) {
      const Array stored = tensor(place.tensors[i], input, each, place.transposed), part = converted(stored, input.type.dtype);
      std::memcpy(result.mutable_bytes().data() + i * bytes, part.bytes().data(), bytes);
      release_mapped_pages(stored.bytes());
    }
    return result;
  }

  const Graph& graph_;
  const Checkpoint& checkpoint_;
  const WeightNames& names_;
  int threads_;
  std::map<std::string, std::string> spelled_;  // as the tables spell them -> in the file
  std::set<std::string> wanted_;
  std::pair<std::string, Array> last_made_;  // by the tensor's name
  std::optional<ThreadPool> pool_;           // that makes them; none until one is made
};

/// Empty: of another type than products take.
std::string_view stored_type(const TensorView& tensor) {
  if (is_packed(tensor)) return tensor.format->name;
  return tensor.dtype == f32 ? "F32" : tensor.dtype == f16 ? "F16" : tensor.dtype == bf16 ? "BF16" : "";
}

/// A matrix as its file has it.
struct Stored {
  std::string type;
  bool made;

  bool operator==(const Stored&) const = default;
};
using StoredTypes = std::map<std::string, Stored>;  // by the names of the tables

/// Whether all experts of a parameter are stored as the first is.
bool are_alike(std::string_view param, const StoredTypes& types, const WeightNames& names) {
  std::int64_t most = 1;
  while (types.contains(place_of(param, most, names).tensors.back())) most *= 2;
  const TensorPlace place = place_of(param, most, names);
  const Stored& first = types.at(place.tensors[0]);
  return std::ranges::all_of(place.tensors, [&](const std::string& tensor) {
    const auto found = types.find(tensor);
    return found == types.end() || found->second == first;
  });
}

}  // namespace

WeightStorage stored_types(const Checkpoint& checkpoint, const WeightNames& names) {
  auto types = std::make_shared<StoredTypes>();
  for (const auto& [spelled, name] : spelled_names(checkpoint.names(), names)) {
    if (const TensorView& view = checkpoint.at(name); view.shape.size() == 2 || view.shape.size() == 3)
      if (std::string_view type = stored_type(view); !type.empty())
        types->emplace(spelled, Stored{std::string(type), static_cast<bool>(view.make_rows)});
  }
  return [types, names](const std::string& param) {
    const TensorPlace place = place_of(param, 1, names);
    const auto found = types->find(place.tensors[0]);
    if (found == types->end()) return std::string();
    if (place.stacked && !are_alike(param, *types, names)) return std::string();
    const auto& [type, made] = found->second;
    const bool is_turned = place.transposed && !made && (place.stacked || find_block_format(type)->values > 1);
    return is_turned ? std::string() : type;
  };
}

NamedArrays load_weights(const Graph& graph, const Checkpoint& checkpoint, const WeightNames& names, int threads, NamedArrays known) {
  return WeightLoader(graph, checkpoint, names, threads).load(std::move(known));
}

}  // namespace rlx
