#pragma once
#include <span>
#include <string_view>
#include <vector>

/// The functions of rlx/ops.h as text, which the build collects from the op sources.
namespace rlx::command {

struct Builder {
  std::string_view name, declaration;
  std::string_view comment;  // what it computes, shapes, errors
  std::string_view ops;      // those that it makes by itself, with blanks between
  bool makes(std::string_view op) const;
};

/// An op or a builder, and the group of its source file: the folder of src/ops.
struct GroupMember {
  std::string_view name, group;
};

/// All, by source file. Overloads are entries of one name.
std::span<const Builder> builders();
/// All ops of src/ops and all builders, by name.
std::span<const GroupMember> group_members();
/// The overloads of one name; none when it is unknown.
std::vector<Builder> builders_of(std::string_view name);
/// Names of the builders that make an op whose own name none has.
std::vector<std::string_view> builders_making(std::string_view op);

}  // namespace rlx::command
