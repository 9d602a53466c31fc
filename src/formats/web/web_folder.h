#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "formats/json/json.h"
#include "rlx/io.h"

namespace rlx {

/// Script and page that go with every program: the sources of this folder as one file each.
std::string_view web_script();
std::string_view web_page();

/// Writes a program for browsers as a new folder, whole or not at all. `page`: what the script shows of it; null: inputs and outputs.
/// `files`: what else the folder holds, by name. Throws Error as export_web.
void write_web_folder(const std::filesystem::path& out, const SavedGraph& saved, const json::Value& page = {},
                      const std::map<std::string, std::string>& files = {});

}  // namespace rlx
