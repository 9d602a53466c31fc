#include "text/tokenizer/files/open_tokenizer.h"

#include <string_view>
#include <system_error>

#include <fmt/ranges.h>

#include "base/files/mapped_file.h"
#include "formats/gguf/gguf.h"
#include "formats/json/json.h"
#include "formats/json/json_field.h"
#include "rlx/error.h"
#include "text/tokenizer/files/gguf_tokenizer.h"
#include "text/tokenizer/files/sentencepiece.h"
#include "text/tokenizer/files/tekken.h"

namespace rlx {
namespace {

/// The tokenizer's file in a folder. Of GGUF files there must be one, or the parts of one.
std::filesystem::path find_file(const std::filesystem::path& folder) {
  std::error_code error;
  for (const char* name : tokenizer_file_names)
    if (std::filesystem::exists(folder / name, error)) return folder / name;
  std::filesystem::path found;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".gguf" && (found.empty() || entry->path() < found)) found = entry->path();
  if (error) fail("{}: cannot list the folder: {}", folder.string(), error.message());
  if (found.empty())
    fail("{}: the folder has no tokenizer (looked for {} and *.gguf)", folder.string(), fmt::join(tokenizer_file_names, ", "));
  return found;
}

}  // namespace

Tokenizer open_tokenizer(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::is_directory(path, error) ? find_file(path) : path;
  const MappedFile mapped = MappedFile::open(file);
  if (looks_like_gguf(mapped.bytes())) return read_gguf_tokenizer(GgufFile::open(file));
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') {
    // No model starts like a JSON document: the first byte of sentencepiece's is that of a piece.
    if (file.extension() != ".model" && !text.starts_with('\n'))
      fail("{}: neither a GGUF file, tokenizer.json, tokenizer.model nor tekken.json", file.string());
    return sentencepiece_tokenizer(read_sentencepiece(mapped.bytes(), file.string()), file.string());
  }
  const json::Value document = json::parse(text, file.string());
  const JsonField field(document, file.string());
  return is_tekken(field) ? read_tekken(field) : Tokenizer(field);
}

}  // namespace rlx
