#include "backends/coreml/device/opened_package.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "backends/coreml/made_program.h"
#include "base/files/mapped_file.h"
#include "ir/array_type.h"
#include "ir/reference.h"
#include "quant/block_format.h"
#include "rlx/ops.h"

namespace rlx::coreml {
namespace {

namespace fs = std::filesystem;

/// One of the system's for such.
fs::path made_folder() {
  std::string name = (fs::temp_directory_path() / "rlx-coreml-XXXXXX").string();
  if (!::mkdtemp(name.data())) fail("coreml: {}: the folder cannot be made", name);
  return name;
}

/// The first field of a model's message, below 128.
int specification_in(const fs::path& package) {
  const fs::path path = package / "Data" / "com.apple.CoreML" / "model.mlmodel";
  const MappedFile file = MappedFile::open(path);
  constexpr std::byte integer_1{0x08}, more{0x80};
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() < 2 || bytes[0] != integer_1 || (bytes[1] & more) != std::byte{})
    fail("{}: no model of CoreML begins so (allowed: the version of its specification)", path.string());
  return static_cast<int>(bytes[1]);
}

fs::path compiled_folder(Library& library, const fs::path& package, const std::string& units) {
  const int seen = specification_in(package), allowed = version_of(static_cast<Target>(library.version)).specification;
  if (seen > allowed)
    fail("{}: specification {} of CoreML (allowed here: up to {}, of iOS {} and macOS of its year)", package.string(), seen, allowed,
         library.version);
  Library::Compiled compiled = library.compile(package);
  if (!compiled.error.empty()) fail("coreml:{}: {}", units, compiled.error);
  return std::move(compiled.folder);
}

}  // namespace

OwnedFolder::~OwnedFolder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

OpenedPackage::OpenedPackage(Library& library, const fs::path& package, const std::string& units)
    : compiled_(compiled_folder(library, package, units)) {
  Library::Opened opened = library.open(compiled_.path, units);
  if (!opened.model) fail("coreml:{}: {}", units, opened.error);
  model_ = std::move(opened.model);
}

std::string OpenedPackage::run(std::span<const Given> inputs, std::span<const Wanted> outputs) {
  const std::scoped_lock lock(running_);
  return model_->run(inputs, outputs);
}

std::unique_ptr<OpenedPackage> compile(Library& library, const SavedGraph& saved, const Bindings& sizes, const std::string& units) {
  const OwnedFolder folder(made_folder());
  const fs::path package = folder.path / "part.mlpackage";
  export_coreml(package, saved, {.sizes = sizes, .minimum_target = library.version, .computes_random_bits = true});
  return std::make_unique<OpenedPackage>(library, package, units);
}

namespace {

/// Of units that compute in f16, long sums are off by hundredths of the largest; what is decoded wrongly is off by as much as that.
constexpr double largest_difference = 1.0 / 16;

constexpr std::int64_t rows_tried = 32;

/// (1, K) times the transpose of (N, K) in blocks.
SavedGraph product_of_blocks(const std::string& type, const Array& blocks) {
  const BlockFormat& format = *find_block_format(type);
  const std::int64_t row_bytes = blocks.shape().back(), rows = std::min(rows_tried, blocks.size() / row_bytes);
  Graph graph("product of " + type);
  const Value x = graph.input("x", {1, row_bytes / format.bytes * format.values}, f32), w = graph.param("w", {rows, row_bytes}, u8);
  graph.output("y", block_dot(x, w, type, false));
  return {graph, {{"w", Array(u8, {rows, row_bytes}, blocks.bytes().first(static_cast<std::size_t>(rows * row_bytes)), blocks.owner())}}};
}

/// Why a type cannot be used; empty: it can.
std::string wrong_product(Library& library, const std::string& units, const std::string& type, const Array& blocks) {
  const SavedGraph saved = product_of_blocks(type, blocks);
  Array x(f32, static_shape(saved.graph.inputs()[0].first.type)), y(f32, static_shape(saved.graph.outputs()[0].second.type()));
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, std::cos(static_cast<double>(i)));
  const Array wanted = evaluate(saved.graph, {{"x", x}, {"w", saved.weights.at("w")}})[0];
  const std::unique_ptr<OpenedPackage> package = compile(library, saved, {}, units);
  const Given given{"x", Number::f32, x.shape(), x.bytes()};
  const Wanted result{"y", Number::f32, y.shape(), y.mutable_bytes()};
  if (const std::string error = package->run({&given, 1}, {&result, 1}); !error.empty()) return error;
  double largest = 0, difference = 0;
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted.get_double(i)));
    const double off = std::abs(y.get_double(i) - wanted.get_double(i));
    if (!(off <= difference)) difference = off;  // also where it is no number, which then stays
    if (std::isnan(off)) break;
  }
  if (difference <= largest_difference * largest) return {};
  return fmt::format("a product is off by {:.3g} (allowed: {:.3g})", difference, largest_difference * largest);
}

}  // namespace

void DecodedTypes::check(Library& library, const std::string& units, const std::string& type, const std::string& name,
                         const Array& blocks) {
  const std::scoped_lock lock(mutex_);
  if (!known_.contains(type)) known_.emplace(type, wrong_product(library, units, type, blocks));
  if (const std::string& error = known_.at(type); !error.empty())
    fail("coreml:{}: parameter '{}' in {}: {}; another unit, as coreml:cpu, or another type may do", units, name, type, error);
}

}  // namespace rlx::coreml
