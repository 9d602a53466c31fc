#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "base/files/mapped_file.h"
#include "base/names.h"
#include "command.h"
#include "files/bounded_input.h"
#include "files/graph_input.h"
#include "formats/gguf/gguf.h"
#include "formats/graph_file.h"
#include "formats/json/json.h"
#include "formats/tensors/npy.h"
#include "reports/inspect_model.h"
#include "rlx/program_file.h"
#include "rlx/text.h"

namespace rlx::command {
namespace {

struct InspectOptions {
  std::string file;
  ModelView view;
};

/// One tensor of a file, or one input or output of a graph.
struct Item {
  std::string name, role;  // role: empty for tensors
  std::string dtype;
  std::vector<std::string> shape;
  std::optional<std::int64_t> bytes;  // nothing where a size is a symbol
};

struct Contents {
  std::string format;
  std::vector<Item> items;
  Metadata metadata;
};

Item tensor_item(std::string name, DType dtype, const std::vector<std::int64_t>& shape, std::size_t bytes) {
  Item item{std::move(name), "", std::string(rlx::name(dtype)), {}, static_cast<std::int64_t>(bytes)};
  for (std::int64_t size : shape) item.shape.push_back(std::to_string(size));
  return item;
}

Item value_item(std::string name, std::string_view role, const Type& type) {
  Item item{std::move(name), std::string(role), std::string(rlx::name(type.dtype)), {}, {}};
  for (const Dim& size : type.shape) item.shape.push_back(size.to_string());
  if (type.is_static() && checked_mul(type.size().value(), std::int64_t{info(type.dtype).bits}))
    item.bytes = bytes_for(type.dtype, type.size().value());
  return item;
}

/// The bytes of a file, or of standard input for "-".
struct Source {
  std::string name;
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

Source open_source(const std::string& file) {
  if (file == "-") {
    const auto text = std::make_shared<const std::string>(read_bounded(std::cin, "standard input"));
    return {"standard input", text, std::as_bytes(std::span(*text))};
  }
  const auto mapped = std::make_shared<const MappedFile>(MappedFile::open(file));
  return {file, mapped, mapped->bytes()};
}

Contents graph_contents(const SavedGraph& saved) {
  Contents contents{"graph", {}, {}};
  for (const auto& [input, value] : saved.graph.inputs()) {
    const std::string_view role = input.kind == InputKind::param ? "param" : input.kind == InputKind::state ? "state" : "input";
    contents.items.push_back(value_item(input.name, role, input.type));
  }
  for (const auto& [name, value] : saved.graph.outputs()) contents.items.push_back(value_item(name, "output", value.type()));
  for (const auto& [name, array] : saved.weights) {
    contents.items.push_back(tensor_item(name, array.dtype(), array.shape(), array.bytes().size()));
    contents.items.back().role = "weight";
  }
  return contents;
}

/// What it holds for any device here.
Contents program_contents(const std::string& file) {
  Contents contents = graph_contents({ProgramFile::graph(ProgramFile::load(file, Device::automatic())), {}});
  contents.format = "program";
  contents.metadata.emplace("hash", ProgramFile::hash(file));
  return contents;
}

Contents safetensors_contents(const Source& source) {
  const SafetensorsFile tensors = SafetensorsFile::parse(source.bytes, source.name);
  if (is_graph_file(tensors)) return graph_contents(load_graph(tensors));
  Contents contents{"safetensors", {}, tensors.metadata()};
  for (const TensorView& tensor : tensors.tensors())
    contents.items.push_back(tensor_item(tensor.name, tensor.dtype, tensor.shape, tensor.data.size()));
  return contents;
}

Contents npy_contents(const Source& source) {
  const Array array = parse_npy(source.bytes, source.name, source.owner);
  return {"npy", {tensor_item("", array.dtype(), array.shape(), array.bytes().size())}, {}};
}

/// By the first bytes; a file that tells nothing there is read as what its name says.
Contents read_contents(const Source& source) {
  const std::string_view text = source.text();
  const auto named = [&](std::string_view ending) { return source.name.ends_with(ending); };
  if (text.starts_with("\x93NUMPY") || named(".npy")) return npy_contents(source);
  if (looks_like_graph_text(text) || named(".rlx")) return graph_contents({parse_graph(text, source.name), {}});
  if (looks_like_safetensors(text) || named(".safetensors")) return safetensors_contents(source);
  fail("{}: is neither a GGUF file, a safetensors file, an npy array, a graph nor a program", source.name);
}

void print_contents_table(const std::string& file, const Contents& contents) {
  std::size_t width = 4;
  for (const Item& item : contents.items) width = std::max(width, printable(item.name).size());
  std::int64_t total = 0;
  for (const Item& item : contents.items) {
    const std::string type = fmt::format("{}[{}]", item.dtype, fmt::join(item.shape, ","));
    if (!item.role.empty()) fmt::print("{:<7} ", item.role);
    if (contents.format != "npy") fmt::print("{:<{}}  ", printable(item.name), width);
    fmt::print("{:<24} {:>14}\n", type, item.bytes ? fmt::format("{} bytes", *item.bytes) : "-");
    total += item.role.empty() ? item.bytes.value_or(0) : 0;
  }
  for (const auto& [key, value] : contents.metadata) fmt::print("metadata {}: {}\n", printable(key), printable(value));
  if (contents.format == "safetensors") fmt::print("{}: valid, {} tensors, {} bytes\n", file, contents.items.size(), total);
  else fmt::print("{}: a valid {}\n", file, contents.format == "npy" ? "npy array" : contents.format);
}

void print_contents_json(const std::string& file, const Contents& contents) {
  json::Value items = json::Value::array();
  for (const Item& item : contents.items) {
    json::Value one{{"name", item.name}, {"dtype", item.dtype}};
    if (!item.role.empty()) one["role"] = item.role;
    one["shape"] = json::Value::array();
    for (const std::string& size : item.shape) {
      const bool number = size.find_first_not_of("0123456789") == std::string::npos;
      if (number) one["shape"].push_back(std::stoll(size));
      else one["shape"].push_back(size);
    }
    one["bytes"] = item.bytes ? json::Value(*item.bytes) : json::Value();
    items.push_back(std::move(one));
  }
  json::Value all{{"file", file}, {"format", contents.format}};
  all[contents.format == "graph" || contents.format == "program" ? "values" : "tensors"] = std::move(items);
  all["metadata"] = json::Value::object();
  for (const auto& [key, value] : contents.metadata) all["metadata"][key] = value;
  fmt::print("{}\n", all.dump(2, ' ', false, json::Value::error_handler_t::replace));
}

bool is_folder(const std::string& file) {
  std::error_code error;
  return std::filesystem::is_directory(file, error);
}

void inspect(const InspectOptions& options) {
  if (is_folder(options.file)) return inspect_model(ModelFile::open(options.file), options.view);
  const auto print_contents = options.view.json ? print_contents_json : print_contents_table;
  if (is_program_file(options.file)) return print_contents(options.file, program_contents(options.file));
  const Source source = open_source(options.file);
  if (looks_like_gguf(source.bytes) || options.file.ends_with(".gguf"))
    return inspect_model(options.file == "-" ? ModelFile::parse(source.bytes, source.name) : ModelFile::open(options.file), options.view);
  print_contents(source.name, read_contents(source));
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "Validate a file and list what is in it");
  command
      ->add_option("file", options->file,
                   "A GGUF file (any part of a split one), a folder with config.json and safetensors files, an adapter (a folder of "
                   "PEFT's or a GGUF file), a safetensors file, an npy array, a graph in text form, a graph file, or a program of 'rlx "
                   "compile'; - reads standard input")
      ->required()
      ->type_name("FILE");
  command->add_flag("--json", options->view.json, "One JSON object: format, tensors (name, type, shape, bytes), metadata");
  command->add_flag("--tensors", options->view.tensors, "Of a GGUF file or a folder: one line a tensor as well");
  command->add_flag("--all", options->view.all, "Of a GGUF file: long arrays and texts of the metadata as a whole");
  command->footer("The whole file is checked before anything is printed. Exit status 1 when something in it is wrong.");
  command->callback([options] { inspect(*options); });
}

}  // namespace rlx::command
