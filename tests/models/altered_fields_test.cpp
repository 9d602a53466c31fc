// Files whose fields are left out or say something else, one at a time: each is read, or refused by one line that names the file.
#include <cstring>

#include "fixture.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "formats/tensors/safetensors.h"
#include "message.h"
#include "models/weights/decoder_files.h"
#include "rlx/io.h"
#include "text/tokenizer/tokenizer.h"

namespace rlx {
namespace {

using Paths = std::vector<json::Value::json_pointer>;

/// All fields; of those of long objects and arrays, which are alike, the first.
void collect(const json::Value& value, const json::Value::json_pointer& at, Paths& into) {
  constexpr std::size_t many = 12, few = 2;
  if (!at.empty()) into.push_back(at);
  if (!value.is_structured()) return;
  std::size_t left = value.is_array() || value.size() > many ? few : many;
  for (const auto& [key, item] : value.items()) {
    if (left-- == 0) break;
    collect(item, value.is_array() ? at / std::stoul(key) : at / key, into);
  }
}

/// Calls `read` with the text of each altered document, and returns how many were refused.
template <class Read>
std::size_t count_refused(const json::Value& document, std::string_view file, Read read) {
  const json::Value others[] = {
      nullptr, json::Value::object(), json::Value::array(), 0, -1, std::uint64_t{1} << 62U, UINT64_MAX, 1.5, 1e300, true, "", "wrong"};
  Paths paths;
  collect(document, json::Value::json_pointer(), paths);
  std::size_t refused = 0;
  const auto try_it = [&](const json::Value& altered, const std::string& how) {
    std::string error;
    try {
      read(altered.dump());
    } catch (const Error& refusal) {
      error = refusal.what();
    }
    EXPECT_TRUE(error.empty() || error.starts_with(fmt::format("{}: ", file))) << how << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << how << ": " << error;
    refused += error.empty() ? 0 : 1;
  };
  for (const auto& path : paths) {
    json::Value altered = document;
    for (const json::Value& other : others) altered[path] = other, try_it(altered, path.to_string() + " = " + other.dump());
    altered = document;
    json::Value& parent = altered[path.parent_pointer()];
    if (parent.is_array()) parent.erase(std::stoul(path.back()));
    else parent.erase(path.back());
    try_it(altered, path.to_string() + " left out");
  }
  return refused;
}

TEST(AlteredFields, OfTokenizersAreReadOrRefused) {
  for (const char* name : {"wordpiece-uncased", "bpe-gpt2"}) {
    const json::Value document = json::read_file(test::fixture("tokenizers") / name / "tokenizer.json");
    const auto read = [](const std::string& text) { Tokenizer::parse(text, "tokenizer.json").encode_ids("Hello w\u00f6rld 12"); };
    EXPECT_GT(count_refused(document, "tokenizer.json", read), 100u) << name;
  }
}

TEST(AlteredFields, OfHeadersOfTensorsAreReadOrRefused) {
  const std::string whole = test::read_text(test::fixture("hf/llama/model.safetensors"));
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), sizeof(length));
  const std::string data = whole.substr(sizeof(length) + length);
  const auto read = [&](const std::string& header) {
    const std::uint64_t size = header.size();
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes += header + data;
    SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "m.safetensors");
  };
  const json::Value document = json::parse(whole.substr(sizeof(length), length), "header");
  EXPECT_GT(count_refused(document, "m.safetensors", read), 100u);
}

TEST(AlteredFields, TensorsThatNoShardHasAreMissingInItsFolder) {
  const test::TemporaryFolder folder;
  std::filesystem::copy_file(test::fixture("hf/llama/config.json"), folder / "config.json");
  NamedArrays first = load_safetensors(test::fixture("hf/llama/model.safetensors")).arrays, second;
  second.insert(first.extract("model.norm.weight")), first.erase("lm_head.weight");
  json::Value index = {{"weight_map", json::Value::object()}};
  const auto write = [&](const char* file, const NamedArrays& arrays) {
    save_safetensors(folder / file, arrays);
    for (const auto& [name, array] : arrays) index["weight_map"][name] = file;
  };
  write("model-1-of-2.safetensors", first), write("model-2-of-2.safetensors", second);
  test::write_text(folder / "model.safetensors.index.json", index.dump());
  const std::string error = test::error_of([&] {
    const DecoderFiles files = DecoderFiles::open(folder.path());
    files.weights(decoder_graph(files.config, {.capacity = 16, .chunk = 8}), 1);
  });
  EXPECT_TRUE(error.starts_with(folder.path().string() + ": the checkpoint lacks 'lm_head.weight'")) << error;
}

}  // namespace
}  // namespace rlx
