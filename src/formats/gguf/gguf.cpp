#include "formats/gguf/gguf.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/names.h"
#include "formats/gguf/gguf_part.h"

namespace rlx {

/// What all copies of a file share.
struct GgufFile::Contents {
  std::string name;
  std::vector<std::unique_ptr<const GgufPart>> parts;
  std::vector<TensorView> tensors;
  std::vector<std::size_t> by_name, by_key;  // into tensors and the metadata of the first part, sorted
};

namespace {

namespace fs = std::filesystem;
using Parts = std::vector<std::unique_ptr<const GgufPart>>;

std::unique_ptr<const GgufPart> open_part(const fs::path& path) {
  auto mapping = std::make_shared<const MappedFile>(MappedFile::open(path));
  const auto bytes = mapping->bytes();
  return read_gguf_part(bytes, path.string(), std::move(mapping));
}

/// What a part says of itself; `index` counts from 0.
struct Place {
  std::int64_t index = 0, count = 1;
};

constexpr std::int64_t most_parts = 65535;  // the count is a u16

Place place_of(const GgufPart& part) {
  const GgufValue* count = find_value(part.metadata, "split.count");
  if (!count) return {};
  const std::int64_t parts = count->integer(0, most_parts);
  if (parts <= 1) return {};
  const GgufValue* index = find_value(part.metadata, "split.no");
  if (!index) fail("{}: key 'split.no' is missing: the file is one of {} parts", part.name, parts);
  return {index->integer(0, parts - 1), parts};
}

/// "-00002-of-00003.gguf", by which the parts find each other.
std::string part_ending(Place place) { return fmt::format("-{:05}-of-{:05}.gguf", place.index + 1, place.count); }

/// The paths of all parts, of which `path` is one. Throws Error that lists those that do not exist.
std::vector<fs::path> paths_of_parts(const fs::path& path, Place place) {
  const std::string file = path.filename().string(), ending = part_ending(place);
  if (!file.ends_with(ending))
    fail("{}: part {} of {}: its name must end with '{}', for the other parts to be found", path.string(), place.index + 1, place.count,
         ending);
  const std::string prefix = file.substr(0, file.size() - ending.size());
  std::vector<fs::path> paths;
  std::vector<std::string> missing;
  for (std::int64_t i = 0; i < place.count; ++i) {
    paths.push_back(path.parent_path() / (prefix + part_ending({i, place.count})));
    std::error_code error;
    if (!fs::exists(paths.back(), error)) missing.push_back(paths.back().filename().string());
  }
  if (!missing.empty()) fail("{}: of its {} parts {} are missing: {}", path.string(), place.count, missing.size(), some_names(missing));
  return paths;
}

void check_part(const GgufPart& part, Place expected) {
  const Place place = place_of(part);
  if (place.count != expected.count) fail("{}: says it has {} parts, the other parts say {}", part.name, place.count, expected.count);
  if (place.index != expected.index)
    fail("{}: holds part {} of {} (key 'split.no'), which is there twice, in the place of part {}", part.name, place.index + 1, place.count,
         expected.index + 1);
}

void check_tensor_count(const Parts& parts, std::size_t tensors) {
  const GgufValue* count = find_value(parts.front()->metadata, "split.tensors.count");
  if (count && static_cast<std::uint64_t>(count->integer()) != tensors)
    fail("{}: key 'split.tensors.count': {}, all parts together hold {}", parts.front()->name, count->integer(), tensors);
}

Parts open_parts(const fs::path& path) {
  Parts parts;
  parts.push_back(open_part(path));
  const Place place = place_of(*parts.front());
  if (place.count == 1) return parts;
  const std::vector<fs::path> paths = paths_of_parts(path, place);
  auto opened = std::move(parts.front());
  parts.clear();
  for (std::int64_t i = 0; i < place.count; ++i) {
    parts.push_back(i == place.index ? std::move(opened) : open_part(paths[static_cast<std::size_t>(i)]));
    check_part(*parts.back(), {i, place.count});
  }
  return parts;
}

/// The numbers 0..count, sorted by the name that `name_of` gives each.
template <class NameOf>
std::vector<std::size_t> sorted_by_name(std::size_t count, NameOf name_of) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return name_of(a) < name_of(b); });
  return order;
}

template <class NameOf>
std::optional<std::size_t> find_sorted(const std::vector<std::size_t>& order, std::string_view wanted, NameOf name_of) {
  const auto found =
      std::lower_bound(order.begin(), order.end(), wanted, [&](std::size_t index, std::string_view text) { return name_of(index) < text; });
  if (found == order.end() || name_of(*found) != wanted) return std::nullopt;
  return *found;
}

}  // namespace

std::shared_ptr<const GgufFile::Contents> GgufFile::join(std::string name, Parts parts) {
  auto contents = std::make_shared<Contents>();
  contents->name = std::move(name);
  contents->parts = std::move(parts);
  auto& tensors = contents->tensors;
  for (const auto& part : contents->parts) tensors.insert(tensors.end(), part->tensors.begin(), part->tensors.end());
  const auto tensor_name = [&](std::size_t i) -> std::string_view { return tensors[i].name; };
  contents->by_name = sorted_by_name(tensors.size(), tensor_name);
  const auto twice = std::adjacent_find(contents->by_name.begin(), contents->by_name.end(),
                                        [&](std::size_t a, std::size_t b) { return tensors[a].name == tensors[b].name; });
  if (twice != contents->by_name.end()) fail("{}: duplicate tensor name {}", contents->name, quote_name(tensors[*twice].name));
  const auto& metadata = contents->parts.front()->metadata;
  contents->by_key = sorted_by_name(metadata.size(), [&](std::size_t i) { return metadata[i].key(); });
  return contents;
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, std::string name) {
  Parts parts;
  parts.push_back(read_gguf_part(bytes, name, nullptr));
  const Place place = place_of(*parts.front());
  if (place.count != 1) fail("{}: is part {} of {}: a split file is opened by its path", name, place.index + 1, place.count);
  return GgufFile(join(std::move(name), std::move(parts)));
}

GgufFile GgufFile::open(const fs::path& path) {
  auto contents = join(path.string(), open_parts(path));
  if (contents->parts.size() > 1) check_tensor_count(contents->parts, contents->tensors.size());
  return GgufFile(std::move(contents));
}

const std::string& GgufFile::name() const { return contents_->name; }
std::uint32_t GgufFile::version() const { return contents_->parts.front()->version; }
bool GgufFile::is_big_endian() const { return contents_->parts.front()->big_endian; }
std::size_t GgufFile::alignment() const { return contents_->parts.front()->alignment; }
std::vector<std::string> GgufFile::part_names() const {
  std::vector<std::string> names;
  for (const auto& part : contents_->parts) names.push_back(part->name);
  return names;
}

std::size_t GgufFile::file_bytes() const {
  std::size_t sum = 0;
  for (const auto& part : contents_->parts) sum += part->file_bytes;
  return sum;
}

std::span<const GgufValue> GgufFile::metadata() const { return contents_->parts.front()->metadata; }

const GgufValue* GgufFile::find_value(std::string_view key) const {
  const auto values = metadata();
  const auto found = find_sorted(contents_->by_key, key, [&](std::size_t i) { return values[i].key(); });
  return found ? &values[*found] : nullptr;
}

const GgufValue& GgufFile::value(std::string_view key) const {
  if (const GgufValue* found = find_value(key)) return *found;
  std::vector<std::string_view> known;
  for (const GgufValue& other : metadata()) known.push_back(other.key());
  fail("{}: key {} is missing among {}{}", name(), quote_name(key), known.size(), near_hint(key, known));
}

std::span<const TensorView> GgufFile::tensors() const { return contents_->tensors; }

const TensorView* GgufFile::find(std::string_view tensor) const {
  const auto& all = contents_->tensors;
  const auto found = find_sorted(contents_->by_name, tensor, [&](std::size_t i) -> std::string_view { return all[i].name; });
  return found ? &all[*found] : nullptr;
}

const TensorView& GgufFile::at(std::string_view tensor) const {
  if (const TensorView* found = find(tensor)) return *found;
  std::vector<std::string_view> known;
  for (const TensorView& other : tensors()) known.push_back(other.name);
  fail("{}: no tensor {} among {}{}", name(), quote_name(tensor), known.size(), near_hint(tensor, known));
}

Array GgufFile::array(std::string_view tensor) const { return to_array(at(tensor), contents_); }

}  // namespace rlx
