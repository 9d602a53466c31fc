// Time to turn documents into ids, one after the other on one thread: milliseconds and ids, for bench/tokenize_peers.py to compare.
#include <cstdint>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "base/fastest_seconds.h"
#include "text/tokenizer/files/open_tokenizer.h"

namespace {

std::vector<std::string> read_documents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> documents;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\0'); end != std::string::npos; end = text.find('\0', begin)) {
    documents.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return documents;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Times tokenizing; prints {\"milliseconds\", \"ids\"} as JSON");
  std::string model, texts, out;
  double seconds = 3;
  app.add_option("model", model, "tokenizer.json or another tokenizer")->required();
  app.add_option("documents", texts, "A file of documents, each ended by a zero byte")->required();
  app.add_option("out", out, "The ids are written here: 32-bit integers, -1 after each document")->required();
  app.add_option("--seconds", seconds, "Time spent on calls after the first three")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const rlx::Tokenizer tokenizer = rlx::open_tokenizer(model);
  const std::vector<std::string> documents = read_documents(texts);
  std::vector<std::int32_t> all;
  for (const std::string& document : documents) {
    const std::vector<std::int32_t> ids = tokenizer.encode_ids(document);
    all.insert(all.end(), ids.begin(), ids.end());
    all.push_back(-1);
  }
  std::ofstream(out, std::ios::binary)
      .write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size() * sizeof all[0]));
  const double best = rlx::fastest_seconds(seconds, [&] {
    for (const std::string& document : documents) tokenizer.encode_ids(document);
  });
  fmt::print("{{\"milliseconds\": {:.2f}, \"ids\": {}}}\n", best * 1e3, all.size() - documents.size());
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "tokenize: {}\n", error.what());
  return 1;
}
