// Embeds the lines of standard input with a sentence-transformers model and prints for each line the one nearest to it.
//   embed MODEL_FOLDER < lines.txt
// Without an argument the folder is that of the environment variable RLX_MINILM; scripts/fetch_minilm.sh DIR fetches such a model.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <rlx/sentence_encoder.h>
#include <rlx/similarity.h>

namespace {

int embed(const std::string& folder) {
  std::vector<std::string> texts;
  for (std::string line; std::getline(std::cin, line);) texts.push_back(line);

  const auto encoder = rlx::SentenceEncoder::open(folder, rlx::Session());
  const std::vector<rlx::Embedding> embeddings = encoder.encode(texts);
  std::printf("%zu texts, embeddings of %d values\n", texts.size(), static_cast<int>(encoder.width()));
  for (const rlx::SimilarPair& pair : rlx::nearest_pairs(rlx::similarity_matrix(embeddings)))
    std::printf("%.3f  %s  |  %s\n", pair.similarity, texts[pair.first].c_str(), texts[pair.second].c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : std::getenv("RLX_MINILM");
  if (folder == nullptr) {
    std::fprintf(stderr,
                 "usage: embed MODEL_FOLDER < lines.txt (or set RLX_MINILM to the folder; scripts/fetch_minilm.sh DIR fetches one)\n");
    return 2;
  }
  try {
    return embed(folder);
  } catch (const rlx::Error& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 1;
  }
}
