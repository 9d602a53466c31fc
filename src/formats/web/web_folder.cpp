#include "formats/web/web_folder.h"

#include <array>
#include <forward_list>
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
                      const std::map<std::string, std::string>& files, const std::map<std::string, SavedGraph>& parts) {
  if (std::filesystem::exists(out)) fail("{}: exists already (a program for browsers is written to a new folder)", out.string());
  std::map<std::filesystem::path, WebProgram> programs{{out, make_web_program(saved)}};
  if (!page.is_null()) programs.at(out).description["page"] = page;
  for (const auto& [name, part] : parts) programs.emplace(out / name, make_web_program(part));
  std::forward_list<MadeFolder> folders;  // the last first, as it lies in one before it
  std::vector<FileWriter> writers;
  const auto add = [&](const std::filesystem::path& file, std::string_view text) { writers.emplace_back(file).write(text); };
  for (const auto& [folder, program] : programs) {
    folders.emplace_front(folder);
    write_weights(writers.emplace_back(folder / "weights.bin"), program.weights);
    add(folder / "kernels.wgsl", program.kernels);
    add(folder / "program.json", json::line(program.description) + "\n");
  }
  add(out / "rlx.js", web_script());
  add(out / "index.html", web_page());
  for (const auto& [name, text] : files) add(out / name, text);
  FileWriter::commit_all(writers);
}

void export_web(const std::filesystem::path& out, const SavedGraph& saved) { write_web_folder(out, saved); }

}  // namespace rlx
