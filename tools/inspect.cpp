#include <memory>

#include <fmt/ranges.h>

#include "base/mapped_file.h"
#include "base/names.h"
#include "command.h"
#include "formats/json.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "graph_input.h"

namespace rlx::command {
namespace {

struct Options {
  std::string file;
  bool json = false;
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
  if (type.is_static()) item.bytes = bytes_for(type.dtype, type.size().value());
  return item;
}

Contents graph_contents(const std::string& file) {
  const auto [graph, weights] = read_graph(file);
  Contents contents{"graph", {}, {}};
  for (const auto& [input, value] : graph.inputs()) {
    const std::string_view role = input.kind == InputKind::param ? "param" : input.kind == InputKind::state ? "state" : "input";
    contents.items.push_back(value_item(input.name, role, input.type));
  }
  for (const auto& [name, value] : graph.outputs()) contents.items.push_back(value_item(name, "output", value.type()));
  for (const auto& [name, array] : weights) {
    contents.items.push_back(tensor_item(name, array.dtype(), array.shape(), array.bytes().size()));
    contents.items.back().role = "weight";
  }
  return contents;
}

Contents safetensors_contents(const std::string& file) {
  const SafetensorsFile tensors = SafetensorsFile::open(file);
  const auto format = tensors.metadata().find("format");
  if (format != tensors.metadata().end() && format->second == "rlx-graph") return graph_contents(file);
  Contents contents{"safetensors", {}, tensors.metadata()};
  for (const TensorView& tensor : tensors.tensors())
    contents.items.push_back(tensor_item(tensor.name, tensor.dtype, tensor.shape, tensor.data.size()));
  return contents;
}

Contents npy_contents(const std::string& file) {
  const Array array = read_npy(file);
  return {"npy", {tensor_item("", array.dtype(), array.shape(), array.bytes().size())}, {}};
}

/// By the first bytes; a file that tells nothing there is read as what its name says.
Contents read_contents(const std::string& file) {
  bool npy = file.ends_with(".npy"), graph = file.ends_with(".rlx");
  {
    const MappedFile mapped = MappedFile::open(file);
    const std::string_view start(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
    npy |= start.starts_with("\x93NUMPY");
    graph |= looks_like_graph_text(start);
  }
  return npy ? npy_contents(file) : graph ? graph_contents(file) : safetensors_contents(file);
}

/// Names come from outside: what would move the cursor is escaped, and long ones are not cut.
std::string printable(std::string_view name) {
  std::string text;
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) text += fmt::format("\\x{:02x}", byte);
    else text += c;
  }
  return text;
}

void print_table(const std::string& file, const Contents& contents) {
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
  else fmt::print("{}: a valid {}\n", file, contents.format == "npy" ? "npy array" : "graph");
}

void print_json(const std::string& file, const Contents& contents) {
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
  all[contents.format == "graph" ? "values" : "tensors"] = std::move(items);
  all["metadata"] = json::Value::object();
  for (const auto& [key, value] : contents.metadata) all["metadata"][key] = value;
  fmt::print("{}\n", all.dump(2, ' ', false, json::Value::error_handler_t::replace));
}

void inspect(const Options& options) {
  const Contents contents = read_contents(options.file);
  (options.json ? print_json : print_table)(options.file, contents);
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("inspect", "Validate a file and list what is in it");
  command->add_option("file", options->file, "A safetensors file, an npy array, a graph in text form, or a graph file")
      ->required()
      ->type_name("FILE");
  command->add_flag("--json", options->json, "One JSON object: format, tensors (name, dtype, shape, bytes), metadata");
  command->footer("The whole file is checked before anything is printed. Exit status 1 when something in it is wrong.");
  command->callback([options] { inspect(*options); });
}

}  // namespace rlx::command
