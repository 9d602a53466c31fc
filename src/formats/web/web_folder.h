#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "formats/json/json.h"
#include "rlx/io.h"

namespace rlx {

/// Script and page that go with every program: sources of this folder as one file each.
std::string_view web_script();
/// What makes ids of words, by the model of a tokenizer.json; empty: a page cannot have it.
std::string_view web_words(std::string_view model);
std::string_view web_page();

/// Writes a program for browsers as a new folder, whole or not at all. `page`: what the script shows of it; null: inputs and outputs.
/// `files`: what else the folder holds, by name. `parts`: programs that go with it, each in a folder of that name inside. Throws Error as
/// export_web.
void write_web_folder(const std::filesystem::path& out, const SavedGraph& saved, const json::Value& page = {},
                      const std::map<std::string, std::string>& files = {}, const std::map<std::string, SavedGraph>& parts = {});

}  // namespace rlx
