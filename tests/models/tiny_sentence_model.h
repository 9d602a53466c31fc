#pragma once
#include <string>

#include "fixture.h"
#include "formats/temporary_folder.h"

namespace rlx::test {

/// A folder as sentence-transformers saves it: the weights of fixtures/hf/bert behind a tokenizer of ten words.
class TinySentenceModel {
 public:
  static constexpr std::size_t width = 64;

  TinySentenceModel() {
    std::filesystem::copy(fixture("sentence_model"), folder_.path(), std::filesystem::copy_options::recursive);
    for (const char* name : {"config.json", "model.safetensors"}) std::filesystem::copy_file(fixture("hf/bert") / name, folder_ / name);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
      std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
  }

  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path operator/(std::string_view name) const { return folder_ / name; }
  void write(std::string_view name, std::string_view text) const { write_text(folder_ / name, text); }

 private:
  TemporaryFolder folder_;
};

}  // namespace rlx::test
