#include "formats/web/web_folder.h"

#include <array>
#include <vector>

#include "base/files/file_writer.h"
#include "formats/web/web_program.h"
#include "rlx/export.h"

namespace rlx {
namespace {

void write_weights(FileWriter& file, const std::vector<Array>& weights) {
  constexpr std::array<std::byte, web_alignment> zeros{};
  for (const Array& each : weights) {
    file.write(each.bytes());
    if (const std::size_t beyond = each.bytes().size() % zeros.size(); beyond > 0) file.write(std::span(zeros).subspan(beyond));
  }
}

}  // namespace

void write_web_folder(const std::filesystem::path& out, const SavedGraph& saved, const json::Value& page,
                      const std::map<std::string, std::string>& files) {
  if (std::filesystem::exists(out)) fail("{}: exists already (a program for browsers is written to a new folder)", out.string());
  WebProgram program = make_web_program(saved);
  if (!page.is_null()) program.description["page"] = page;
  const MadeFolder folder(out);
  std::vector<FileWriter> writers;
  const auto add = [&](const std::string& name, std::string_view text) { writers.emplace_back(out / name).write(text); };
  write_weights(writers.emplace_back(out / "weights.bin"), program.weights);
  add("kernels.wgsl", program.kernels);
  add("program.json", json::line(program.description) + "\n");
  add("rlx.js", web_script());
  add("index.html", web_page());
  for (const auto& [name, text] : files) add(name, text);
  FileWriter::commit_all(writers);
}

void export_web(const std::filesystem::path& out, const SavedGraph& saved) { write_web_folder(out, saved); }

}  // namespace rlx
