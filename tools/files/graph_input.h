#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/graph.h"
#include "rlx/io.h"
#include "rlx/program_file.h"
#include "rlx/session.h"

/// What the commands that take a graph share: reading it, and giving values to its inputs.
namespace rlx::command {

/// A graph in text form, or a graph file with its weights; "-" reads text from standard input. Throws Error with the position of what is
/// wrong.
SavedGraph read_graph(const std::string& file);

/// Whether bytes from the start of a file look like a graph in text form: the word `graph`, after comments and blank lines.
bool looks_like_graph_text(std::string_view text);

/// Whether the bytes can only be a safetensors file, which a graph file is: a JSON object behind the 8 bytes of its length.
bool looks_like_safetensors(std::string_view bytes);

/// Adds the arrays that arguments of the command line name: NAME=FILE.npy, NAME=FILE.safetensors for the tensor of that name (or the only
/// one, or FILE.safetensors:TENSOR for another), or FILE.safetensors for all of its tensors by their names. Throws CLI::ValidationError for
/// an argument of another form, Error for a bad file or a name given twice.
void read_arrays(const std::vector<std::string>& arguments, NamedArrays& into);

/// The places of the values that such arguments name.
std::vector<ProgramFile::Source> value_sources(const std::vector<std::string>& arguments);

/// Whether it is a file that `rlx compile` wrote, by its first bytes.
bool is_program_file(const std::string& file);

/// Sizes of symbols from arguments NAME=SIZE. Throws CLI::ValidationError.
std::map<std::string, std::int64_t> parse_sizes(const std::vector<std::string>& arguments);

}  // namespace rlx::command
