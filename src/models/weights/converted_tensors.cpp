#include "models/weights/converted_tensors.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/names.h"
#include "models/weights/tensor_names.h"
#include "quant/block_format.h"
#include "rlx/error.h"

namespace rlx {
namespace {

/// Values of a tensor, `stride` values apart.
struct Run {
  const TensorView* tensor = nullptr;  // null: zeros
  const BlockFormat* format = nullptr;
  std::int64_t begin = 0, stride = 1;
};

const BlockFormat& format_of(const TensorView& tensor, std::string_view file) {
  const BlockFormat* format = tensor.format ? tensor.format : find_block_format(safetensors_dtype_name(tensor.dtype));
  if (!format || !is_float(tensor.dtype))
    fail("{}: tensor {}: {} cannot be converted (allowed: F32, F16, BF16, F64, and blocks)", file, quote_name(tensor.name),
         name(tensor.dtype));
  return *format;
}

/// The same of a tensor whose rows are made.
void read_made(const Run& run, std::int64_t count, float* values) {
  const std::int64_t width = run.tensor->shape.back();
  std::vector<std::byte> made;
  std::vector<float> decoded(static_cast<std::size_t>(width));
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = run.begin + i * run.stride, row = at / width;
    if (row != last) run.format->decode(row_bytes(*run.tensor, row, 1, made).data(), decoded.data(), width);
    last = row, values[i] = decoded[static_cast<std::size_t>(at % width)];
  }
}

void read_run(const Run& run, std::int64_t count, float* values) {
  if (run.tensor->make_rows) return read_made(run, count, values);
  const BlockFormat& format = *run.format;
  const std::byte* bytes = run.tensor->data.data();
  if (run.stride == 1 && run.begin % format.values == 0 && count % format.values == 0)
    return format.decode(bytes + run.begin / format.values * format.bytes, values, count);
  std::vector<float> block(static_cast<std::size_t>(format.values));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = run.begin + i * run.stride;
    format.decode(bytes + at / format.values * format.bytes, block.data(), format.values);
    values[i] = block[static_cast<std::size_t>(at % format.values)];
  }
}

std::int64_t columns_of(const Dims& shape) { return shape.size() < 2 ? 1 : shape.back().value(); }

std::int64_t count_of(const Dims& shape) {
  std::int64_t values = 1;
  for (const Dim& size : shape) values *= size.value();  // a graph's: they were checked
  return values;
}

/// A tensor of the file that is read.
struct StoredTensor {
  const TensorView* view;
  const BlockFormat* format;
};

/// Where a parameter's rows lie in it.
class StoredParam {
 public:
  StoredParam(const Input& param, const TensorPlace& place, const RowRange& range, std::vector<StoredTensor> tensors)
      : tensors_(std::move(tensors)),
        range_(range),
        columns_(columns_of(param.type.shape)),
        rows_each_(count_of(param.type.shape) / columns_ / static_cast<std::int64_t>(tensors_.size())),
        transposed_(place.transposed && !tensors_.front().view->make_rows && param.type.shape.size() == 2) {}

  std::int64_t columns() const { return columns_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  Run row(std::int64_t row) const {
    const StoredTensor& tensor = tensors_[static_cast<std::size_t>(row / rows_each_)];
    const std::int64_t at = range_.in_tensor(row % rows_each_);
    return transposed_ ? Run{tensor.view, tensor.format, at, range_.of} : Run{tensor.view, tensor.format, at * columns_, 1};
  }

 private:
  std::vector<StoredTensor> tensors_;  // several: experts
  RowRange range_;
  std::int64_t columns_, rows_each_;
  bool transposed_;
};

/// A parameter's part of a tensor to be written.
struct Part {
  RowRange range;
  StoredParam stored;
  ParamChange change;
};

/// The element type of all that the parts are made of; f32 where they differ.
DType common_dtype(const std::vector<Part>& parts) {
  const DType first = parts.front().stored.tensors().front().view->dtype;
  for (const Part& part : parts)
    for (const StoredTensor& tensor : part.stored.tensors())
      if (tensor.view->dtype != first) return f32;
  return first;
}

/// Reads the rows of a tensor to be written.
class TensorReader {
 public:
  TensorReader(std::shared_ptr<const Checkpoint> checkpoint, std::vector<Part> parts, std::int64_t columns, std::int64_t first_row,
               bool transposed)
      : checkpoint_(std::move(checkpoint)), parts_(std::move(parts)), columns_(columns), first_row_(first_row), transposed_(transposed) {}

  /// Rows of `width` values of the tensor as it is written.
  void read(std::int64_t width, std::int64_t first, std::int64_t count, float* values) const {
    if (transposed_) return read_transposed(width, first, count, values);
    const bool vector = columns_ == 1;  // each element is a row
    const std::int64_t each = vector ? width : 1;
    for (std::int64_t row = first * each; row < (first + count) * each; ++row, values += columns_) read_columns(row, 0, columns_, values);
  }

  /// The tensor's bytes, where they lie in the file as they are to be written; else nothing.
  std::span<const std::byte> stored_bytes(std::int64_t rows) const {
    if (!keeps_rows()) return {};
    const Run first = run_of(0);
    for (std::int64_t row = 0; row < rows; ++row) {
      const Run run = run_of(row);
      if (run.tensor != first.tensor || run.tensor == nullptr || run.stride != 1 || run.begin != first.begin + row * columns_) return {};
    }
    if (first.format->values > 1 || first.tensor->make_rows) return {};
    return first.tensor->data.subspan(static_cast<std::size_t>(first.begin * first.format->bytes),
                                      static_cast<std::size_t>(rows * columns_ * first.format->bytes));
  }

  /// The one format of rows that are made and only put elsewhere; else null.
  const BlockFormat* made_format(std::int64_t rows) const {
    if (!keeps_rows()) return nullptr;
    const BlockFormat* const format = parts_.front().stored.tensors().front().format;
    for (const Part& part : parts_)
      for (const StoredTensor& tensor : part.stored.tensors())
        if (!tensor.view->make_rows || tensor.format != format) return nullptr;
    for (std::int64_t row = 0; row < rows; ++row)
      if (run_of(row).tensor == nullptr) return nullptr;
    return format;
  }

  /// Rows that have a made_format, as TensorView::make_rows writes them.
  void copy(std::int64_t first, std::int64_t count, std::byte* to) const {
    const std::int64_t bytes =
        columns_ / parts_.front().stored.tensors().front().format->values * parts_.front().stored.tensors().front().format->bytes;
    for (std::int64_t row = first; row < first + count; ++row, to += bytes) {
      const Run run = run_of(row);
      run.tensor->make_rows(run.begin / columns_, 1, to);
    }
  }

 private:
  /// Whether each row is one of a stored tensor, or of zeros.
  bool keeps_rows() const {
    return !transposed_ && std::none_of(parts_.begin(), parts_.end(), [](const Part& part) {
      return part.change.value || part.change.column || part.change.turned_rows > 0;
    });
  }

  /// The part that a row is of, and the parameter's row.
  std::pair<const Part*, std::int64_t> part_at(std::int64_t row) const {
    if (parts_.size() == 1) return {&parts_.front(), row + first_row_};
    for (const Part& part : parts_) {
      const RowRange& range = part.range;
      const std::int64_t group = row / (range.of / range.groups), each = range.count / range.groups;
      const std::int64_t at = row % (range.of / range.groups) - range.first / range.groups;
      if (at >= 0 && at < each) return {&part, group * each + at};
    }
    fail_internal("row {} of a tensor belongs to no parameter", row);
  }

  Run run_of(std::int64_t row) const {
    const auto [part, at] = part_at(row);
    return run_of(*part, at);
  }
  Run run_of(const Part& part, std::int64_t row) const {
    const ParamChange& change = part.change;
    if (const std::int64_t turned = change.turned_rows; turned > 0) {
      Run run = part.stored.row(row / turned * columns_);
      run.begin += row % turned, run.stride = part.stored.columns();
      return run;
    }
    if (change.row) row = change.row(row);
    return row < 0 ? Run{} : part.stored.row(row);
  }

  /// Some columns of a row of the parameters.
  void read_columns(std::int64_t row, std::int64_t first, std::int64_t count, float* values) const {
    const auto [part, at] = part_at(row);
    Run run = run_of(*part, at);
    run.begin += first * run.stride;
    if (run.tensor != nullptr) read_run(run, count, values);
    else std::fill(values, values + count, 0.0f);
    if (part->change.column) {
      if (count != columns_) fail_internal("columns in another order are read one by one");
      const std::vector<float> there(values, values + count);
      for (std::int64_t i = 0; i < count; ++i) values[i] = there[static_cast<std::size_t>(part->change.column(i))];
    }
    if (part->change.value) std::transform(values, values + count, values, part->change.value);
  }

  /// Columns of the parameters as rows, which are `width` values long.
  void read_transposed(std::int64_t width, std::int64_t first, std::int64_t count, float* values) const {
    std::vector<float> column(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < width; ++i) {
      read_columns(i, first, count, column.data());
      for (std::int64_t row = 0; row < count; ++row) values[row * width + i] = column[static_cast<std::size_t>(row)];
    }
  }

  std::shared_ptr<const Checkpoint> checkpoint_;  // keeps the bytes mapped
  std::vector<Part> parts_;
  std::int64_t columns_;    // of the parameters
  std::int64_t first_row_;  // of an expert's among the rows of all
  bool transposed_;
};

/// Puts the tensors together.
class TensorConverter {
 public:
  TensorConverter(std::shared_ptr<const Checkpoint> checkpoint, const ModelForm& from, const ModelForm& to, const ParamChanges& changes)
      : checkpoint_(std::move(checkpoint)),
        from_(from),
        to_(to),
        changes_(changes),
        spelled_(spelled_names(checkpoint_->names(), from.names)) {
    std::set<std::string> wanted;
    for (const auto& [input, value] : from.graph.inputs()) {
      if (input.kind != InputKind::param) continue;
      const TensorPlace place = place_of(input.name, first_size(input), from.names);
      wanted.insert(place.tensors.begin(), place.tensors.end());
      params_.emplace(input.name, &input);
    }
    check_tensors(*checkpoint_, spelled_, wanted, from.names);
  }

  std::vector<SourceTensor> convert() {
    for (const auto& [input, value] : to_.graph.inputs())
      if (input.kind == InputKind::param) add(input);
    return std::move(tensors_);
  }

 private:
  const Input& param_of(const Graph& graph, const std::string& name) const {
    for (const auto& [input, value] : graph.inputs())
      if (input.name == name) return input;
    fail_internal("the parameter {} is in no graph", name);
  }

  /// All tensors that `param` is in, unless they were added with a sibling.
  void add(const Input& param) {
    const TensorPlace place = place_of(param.name, first_size(param), to_.names);
    if (!added_.insert(place.tensors.front()).second) return;
    std::vector<Part> parts;
    for (const std::string& sibling : place.siblings) parts.push_back(part(param_of(to_.graph, sibling), place));
    if (parts.empty()) parts.push_back(part(param, place));
    Dims shape = param.type.shape;
    const std::int64_t columns = columns_of(shape), experts = place.stacked ? first_size(param) : 1;
    shape[0] = parts.front().range.of;
    if (place.stacked) shape.erase(shape.begin());
    const bool transposed = place.transposed && shape.size() == 2;
    const std::int64_t rows = count_of(shape) / columns;
    if (transposed) std::swap(shape[0], shape[1]);
    const DType dtype = common_dtype(parts);
    for (std::int64_t e = 0; e < experts; ++e)
      add(place.tensors[static_cast<std::size_t>(e)], dtype, shape, rows, TensorReader(checkpoint_, parts, columns, e * rows, transposed));
  }

  void add(const std::string& name, DType dtype, const Dims& shape, std::int64_t rows, TensorReader reader) {
    SourceTensor tensor{.view = {.name = name, .dtype = dtype, .shape = {}, .data = reader.stored_bytes(rows)}, .read_rows = {}};
    for (const Dim& size : shape) tensor.view.shape.push_back(size.value());
    const BlockFormat* const made = reader.made_format(rows);
    tensor.view.format = made ? made : find_block_format(safetensors_dtype_name(dtype));
    if (made) tensor.view.make_rows = [reader](std::int64_t first, std::int64_t count, std::byte* to) { reader.copy(first, count, to); };
    const std::int64_t width = tensor.view.shape.back();
    tensor.read_rows = [reader = std::move(reader), width](std::int64_t first, std::int64_t count, float* values) {
      reader.read(width, first, count, values);
    };
    tensors_.push_back(std::move(tensor));
  }

  Part part(const Input& param, const TensorPlace& place) {
    ParamChange change = changes_(param.name);
    const auto found = params_.find(change.param);
    if (found == params_.end()) fail_internal("the parameter {} is to be made of {}, which is not there", param.name, change.param);
    const Input& there = *found->second;
    const TensorPlace stored = place_of(there.name, first_size(there), from_.names);
    const RowRange range = range_of(from_.graph, there.name, first_size(there), stored);
    std::vector<StoredTensor> tensors;
    for (const std::string& name : stored.tensors) tensors.push_back(checked(name, there, stored, range));
    return {range_of(to_.graph, param.name, first_size(param), place), StoredParam(there, stored, range, std::move(tensors)),
            std::move(change)};
  }

  /// The tensor, whose shape must be what `from` says.
  StoredTensor checked(const std::string& spelled, const Input& param, const TensorPlace& place, const RowRange& range) const {
    const TensorView& tensor = checkpoint_->at(spelled_.at(spelled));
    const BlockFormat& format = format_of(tensor, checkpoint_->name());
    Dims shape = param.type.shape;
    shape[0] = range.of;
    if (place.stacked) shape.erase(shape.begin());
    if (place.transposed && !tensor.make_rows && shape.size() == 2) std::swap(shape[0], shape[1]);
    if (!same_but_for_axes(tensor.shape, shape))
      fail("{}: tensor {} is {}, but the model's config asks for {}", checkpoint_->name(), quote_name(tensor.name),
           type_text(tensor.dtype, tensor.shape), Type{tensor.dtype, shape}.to_string());
    return {&tensor, &format};
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  const ModelForm &from_, &to_;
  const ParamChanges& changes_;
  std::map<std::string, std::string> spelled_;
  std::map<std::string, const Input*> params_;  // of `from`
  std::set<std::string> added_;
  std::vector<SourceTensor> tensors_;
};

}  // namespace

std::vector<SourceTensor> converted_tensors(std::shared_ptr<const Checkpoint> checkpoint, const ModelForm& from, const ModelForm& to,
                                            const ParamChanges& changes) {
  return TensorConverter(std::move(checkpoint), from, to, changes).convert();
}

}  // namespace rlx
