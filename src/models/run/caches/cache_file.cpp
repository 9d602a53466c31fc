#include "models/run/caches/cache_file.h"

#include <algorithm>
#include <bit>

#include "base/flat_hash.h"
#include "base/names.h"
#include "rlx/io.h"
#include "rlx/text.h"

namespace rlx {
namespace {

constexpr std::string_view cache_format = "rlx cache", cache_version = "2", note_prefix = "note.";
constexpr const char* ids_name = "ids";

/// Some bytes from each quarter.
std::uint64_t sample_hash(std::span<const std::byte> bytes) {
  constexpr std::size_t places = 4, length = 64;
  std::uint64_t hash = bytes.size();
  for (std::size_t i = 0; i < places; ++i) {
    const auto part = bytes.subspan(bytes.size() / places * i);
    hash = hash_mix(hash, hash_bytes({reinterpret_cast<const char*>(part.data()), std::min(part.size(), length)}));
  }
  return hash;
}

}  // namespace

std::string cache_fingerprint(const DecoderFiles& model, Precision precision) {
  const Graph graph = decoder_graph(
      model.config,
      {.capacity = 1, .chunk = 1, .storage = stored_types(model.checkpoint, model.names), .adapters = model.adapters.forms()});
  std::uint64_t hash = hash_mix(hash_bytes(to_text(graph)), static_cast<std::size_t>(precision));
  for (const Checkpoint::File& file : model.checkpoint.files())
    for (const TensorView& tensor : file.tensors) {
      std::vector<std::byte> made;  // of a tensor whose rows are made the first one says enough
      const auto bytes = tensor.make_rows ? row_bytes(tensor, 0, std::min<std::int64_t>(row_count(tensor), 1), made) : tensor.data;
      hash = hash_mix(hash_mix(hash, hash_bytes(tensor.name)), sample_hash(bytes));
    }
  model.adapters.for_each([&](std::string_view tensor, const LowRankChange& change, double scale) {
    hash = hash_mix(hash_mix(hash, hash_bytes(tensor)), std::bit_cast<std::uint64_t>(change.scale * scale));
    hash = hash_mix(hash_mix(hash, sample_hash(change.a.bytes())), sample_hash(change.b.bytes()));
  });
  return fmt::format("{:016x}", hash);
}

void write_cache(const std::filesystem::path& path, const CachedDecoder& decoder, const std::string& fingerprint, const Metadata& notes) {
  DecoderCache cache = decoder.cache();
  if (cache.ids.empty()) fail("{}: there is nothing to save: the cache holds no tokens", path.string());
  cache.states.emplace(ids_name, Array::of<std::int32_t>({static_cast<std::int64_t>(cache.ids.size())}, cache.ids));
  Metadata metadata{{"format", std::string(cache_format)},
                    {"version", std::string(cache_version)},
                    {"model", fingerprint},
                    {"type", std::string(name_of(decoder.cache_type()))},
                    {"exact", decoder.is_exact() ? "yes" : "no"},
                    {"factors", cache.short_factors ? "short" : "long"}};
  for (const auto& [name, text] : notes) metadata.emplace(fmt::format("{}{}", note_prefix, name), text);
  save_safetensors(path, cache.states, metadata);
}

Metadata read_cache(const std::filesystem::path& path, CachedDecoder& decoder, const std::string& fingerprint) {
  TensorFile file = load_safetensors(path);
  const auto entry = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  const auto is = [&](const char* key, std::string_view value) { return entry(key) == value; };
  if (!is("format", cache_format)) fail("{}: is no cache of tokens", path.string());
  if (!is("version", cache_version)) fail("{}: this version of caches is not known (known: {})", path.string(), cache_version);
  if (!is("model", fingerprint)) fail("{}: is the cache of another model, or of another --precision", path.string());
  if (!is("type", name_of(decoder.cache_type())))
    fail("{}: is a cache of type {} (this model's is {}; --cache-type chooses)", path.string(), quote_name(entry("type")),
         name_of(decoder.cache_type()));
  if (decoder.is_exact() && !is("exact", "yes")) fail("{}: is a cache that was made without --exact", path.string());
  const auto ids = file.arrays.find(ids_name);
  if (ids == file.arrays.end() || ids->second.dtype() != i32 || ids->second.rank() != 1)
    fail("{}: tensor '{}' is missing, or no list of i32", path.string(), ids_name);
  DecoderCache cache{.short_factors = !is("factors", "long")};
  const auto values = ids->second.values<std::int32_t>();
  cache.ids.assign(values.begin(), values.end());
  file.arrays.erase(ids);
  cache.states = std::move(file.arrays);
  decoder.restore(cache, path.string());
  Metadata notes;
  for (const auto& [name, text] : file.metadata)
    if (name.starts_with(note_prefix)) notes.emplace(name.substr(note_prefix.size()), text);
  return notes;
}

}  // namespace rlx
