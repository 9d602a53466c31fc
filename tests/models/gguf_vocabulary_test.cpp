#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "fixture.h"
#include "text/tokenizer/files/open_tokenizer.h"

namespace rlx {
namespace {

/// Vocabularies of models with the ids that others computed for forty texts; not part of the project.
std::filesystem::path vocabularies() { return test::fixture("../../../shared/fixtures/vocab"); }

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Texts are separated by a line of their own; each has a line of ids.
std::vector<std::string> texts_of(const std::string& file) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (std::size_t end = file.find(separator); end != std::string::npos; end = file.find(separator, begin)) {
    texts.push_back(file.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return texts;
}

class GgufVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(GgufVocabulary, GivesTheRecordedIds) {
  const std::filesystem::path path = vocabularies() / (std::string("ggml-vocab-") + GetParam() + ".gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs the folder " << vocabularies() << ", which is not there";
  const Tokenizer tokenizer = open_tokenizer(path);
  const std::vector<std::string> texts = texts_of(read(path.string() + ".inp"));
  ASSERT_GT(texts.size(), 40u);
  std::istringstream lines(read(path.string() + ".out"));
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream numbers(line);
    const std::vector<std::int32_t> ids{std::istream_iterator<std::int32_t>(numbers), {}};
    EXPECT_EQ(tokenizer.encode_ids(text, false), ids);
    const bool keeps_text = std::string(GetParam()) != "bert-bge";
    if (keeps_text) {
      EXPECT_EQ(tokenizer.decode(ids), text);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufVocabulary, testing::Values("bert-bge", "falcon", "gpt-2", "llama-spm", "phi-3"), [](const auto& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace rlx
