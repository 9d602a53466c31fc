#include "documents/op_groups.h"

#include <algorithm>

#include "documents/builders.h"
#include "documents/op_description.h"

namespace rlx::command {
namespace {

std::string in_words(std::string_view folder) {
  std::string words(folder);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

}  // namespace

std::map<std::string, OpGroup> op_groups() {
  std::map<std::string_view, std::string_view> folders;
  for (const GroupMember& member : group_members()) folders[member.name] = member.group;
  std::map<std::string, OpGroup> groups;
  for (const auto& [name, op] : op_registry()) {
    const auto folder = folders.find(name);  // those that a graph is made with are written in none
    groups[folder == folders.end() ? std::string(kind_word(op->kind)) : in_words(folder->second)].ops.push_back(op);
  }
  for (const auto& [name, folder] : folders)
    if (op_registry().count(name) == 0) groups[in_words(folder)].functions.push_back(name);
  return groups;
}

}  // namespace rlx::command
