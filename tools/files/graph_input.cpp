#include "files/graph_input.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/files/mapped_file.h"
#include "base/names.h"
#include "files/bounded_input.h"
#include "formats/gguf/gguf.h"
#include "rlx/text.h"

namespace rlx::command {
namespace {

void add_array(std::string name, Array array, NamedArrays& into) {
  if (!into.emplace(name, std::move(array)).second) fail("a value for {} is given twice", quote_name(name));
}

/// The tensor that `place` names, "FILE.safetensors:TENSOR"; behind a file alone the one called `name`, or the file's only one.
ProgramFile::Source tensor_source(const std::string& name, const std::string& place) {
  constexpr std::string_view ending = ".safetensors";
  const std::size_t end = place.rfind(ending) + ending.size();
  const TensorFile file = load_safetensors(place.substr(0, end));
  const std::string wanted = end < place.size() ? place.substr(end + 1) : name;
  if (file.arrays.contains(wanted)) return {name, place.substr(0, end), wanted};
  if (end == place.size() && file.arrays.size() == 1) return {name, place.substr(0, end), file.arrays.begin()->first};
  std::vector<std::string_view> known;
  for (const auto& [tensor, array] : file.arrays) known.push_back(tensor);
  fail("{}: there is no tensor {}{}; {}:TENSOR names another", place.substr(0, end), quote_name(wanted), near_hint(wanted, known),
       place.substr(0, end));
}

[[noreturn]] void refuse_model(const std::string& path) {
  fail("{}: it is a model (allowed: graphs; --model of 'rlx explain' and 'rlx profile' takes models, 'rlx run' and 'rlx embed' run them)",
       path);
}

/// Whether it is "FILE.safetensors" or "FILE.safetensors:TENSOR".
bool names_safetensors(std::string_view place) {
  return place.ends_with(".safetensors") || place.find(".safetensors:") != std::string_view::npos;
}

}  // namespace

bool looks_like_graph_text(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    if (!text.starts_with('#')) break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  return text.starts_with("graph") && text.size() > 5 && blank.find(text[5]) != std::string_view::npos;
}

bool looks_like_safetensors(std::string_view bytes) { return bytes.size() > 8 && bytes[8] == '{'; }

SavedGraph read_graph(const std::string& file) {
  if (file == "-") {
    return {parse_graph(read_bounded(std::cin, "standard input"), "standard input"), {}};
  }
  if (is_program_file(file)) fail("{}: it is a program of 'rlx compile' (allowed: graphs)", file);
  if (std::error_code error; std::filesystem::exists(std::filesystem::path(file) / "config.json", error)) refuse_model(file);
  const MappedFile mapped = MappedFile::open(file);
  if (looks_like_gguf(mapped.bytes())) refuse_model(file);
  const std::string_view bytes(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  if (!looks_like_graph_text(bytes) && looks_like_safetensors(bytes)) return load_graph(file);
  return {parse_graph(bytes, file), {}};
}

std::vector<ProgramFile::Source> value_sources(const std::vector<std::string>& arguments) {
  std::vector<ProgramFile::Source> sources;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos && argument.ends_with(".safetensors")) {
      for (const auto& [name, array] : load_safetensors(argument).arrays) sources.push_back({name, argument, name});
    } else if (equals == std::string::npos || equals == 0 || equals + 1 == argument.size()) {
      throw CLI::ValidationError(fmt::format("{}: not of the form NAME=FILE.npy, NAME=FILE.safetensors or FILE.safetensors", argument));
    } else {
      const std::string name = argument.substr(0, equals), place = argument.substr(equals + 1);
      sources.push_back(names_safetensors(place) ? tensor_source(name, place) : ProgramFile::Source{name, place});
    }
  }
  return sources;
}

void read_arrays(const std::vector<std::string>& arguments, NamedArrays& into) {
  std::map<std::filesystem::path, TensorFile> files;
  for (const ProgramFile::Source& source : value_sources(arguments)) {
    if (source.tensor.empty()) {
      add_array(source.name, load_npy(source.file), into);
      continue;
    }
    const auto [file, is_new] = files.try_emplace(source.file);
    if (is_new) file->second = load_safetensors(source.file);
    add_array(source.name, file->second.arrays.at(source.tensor), into);
  }
}

bool is_program_file(const std::string& file) {
  constexpr std::string_view magic = "rlx-prog";
  std::array<char, magic.size()> begin{};
  std::ifstream from(file, std::ios::binary);
  return file != "-" && from.read(begin.data(), begin.size()) && std::string_view(begin.data(), begin.size()) == magic;
}

std::map<std::string, std::int64_t> parse_sizes(const std::vector<std::string>& arguments) {
  std::map<std::string, std::int64_t> sizes;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    std::int64_t size = 0;
    const char* end = argument.data() + argument.size();
    const auto parsed = equals == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                    : std::from_chars(argument.data() + equals + 1, end, size);
    if (equals == 0 || parsed.ec != std::errc() || parsed.ptr != end)
      throw CLI::ValidationError(fmt::format("{}: not of the form NAME=SIZE", argument));
    if (!sizes.emplace(argument.substr(0, equals), size).second)
      throw CLI::ValidationError(fmt::format("{}: the symbol is given twice", argument));
  }
  return sizes;
}

}  // namespace rlx::command
