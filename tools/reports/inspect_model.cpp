#include "reports/inspect_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <fmt/ranges.h>

#include "formats/json/json.h"

namespace rlx::command {
namespace {

constexpr std::size_t longest_text = 60;    // bytes of a text that a line shows
constexpr std::int64_t longest_array = 60;  // elements that are JSON as a whole
constexpr std::size_t most_elements = 4;    // of an array

std::string size_text(std::int64_t bytes) {
  constexpr double mebi = 1 << 20;
  const auto size = static_cast<double>(bytes);
  if (size >= 1024 * mebi) return fmt::format("{:.2f} GiB", size / (1024 * mebi));
  return size >= mebi ? fmt::format("{:.1f} MiB", size / mebi) : fmt::format("{} bytes", bytes);
}

std::string count_text(std::int64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 1e9) return fmt::format("{:.2f} billion", number / 1e9);
  return number >= 1e6 ? fmt::format("{:.1f} million", number / 1e6) : fmt::format("{}", count);
}

/// One value on one line; cut unless `all`.
std::string value_text(const json::Value& value, bool all) {
  if (value.is_string()) {
    const std::string text = printable(value.get_ref<const std::string&>());
    return all || text.size() <= longest_text ? text : fmt::format("{}... ({} bytes)", text.substr(0, longest_text), text.size());
  }
  if (!value.is_array()) return value.dump(-1, ' ', false, json::Value::error_handler_t::replace);
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < value.size() && (all || i < most_elements); ++i) {
    const json::Value& element = value[i];
    shown.push_back(element.is_string() ? fmt::format("'{}'", value_text(element, all)) : value_text(element, all));
  }
  const bool whole = shown.size() == value.size();
  return fmt::format("[{}{}]{}", fmt::join(shown, ", "), whole ? "" : ", ...", whole ? "" : fmt::format(" ({} in all)", value.size()));
}

void print_line(std::string_view label, const std::string& text) { fmt::print("  {:<24} {}\n", label, text); }

/// `text`: of the library, which wrote it as JSON.
void print_object(std::string_view title, const std::string& text, bool all) {
  const json::Value object = json::parse(text, title);
  if (object.empty()) return;
  fmt::print("\n{}\n", title);
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() && value.contains("id"))
      print_line(key, fmt::format("{} {}", value["id"].dump(), value_text(value["text"], all)));
    else print_line(printable(key), value_text(value, all));
  }
}

void print_types(const ModelSummary& summary) {
  if (summary.types.empty()) return;
  fmt::print("\n  {:<10} {:>8} {:>16} {:>16} {:>7}\n", "type", "tensors", "values", "bytes", "share");
  for (const TypeShare& share : summary.types)
    fmt::print("  {:<10} {:>8} {:>16} {:>16} {:>6.1f}%\n", share.type, share.tensors, share.values, share.bytes,
               100.0 * static_cast<double>(share.bytes) / static_cast<double>(std::max<std::int64_t>(summary.bytes, 1)));
}

void print_summary(const ModelSummary& summary, bool all) {
  print_line("format", summary.format);
  if (!summary.architecture.empty()) print_line("architecture", printable(summary.architecture));
  if (!summary.name.empty()) print_line("name", printable(summary.name));
  if (const auto& a = summary.adapter) {
    const std::string ranks = a->least_rank == a->largest_rank ? fmt::format("rank {}", a->least_rank)
                                                               : fmt::format("ranks {} to {}", a->least_rank, a->largest_rank);
    print_line("adapter", fmt::format("low-rank changes of {} matrices, {}", a->matrices, ranks));
  }
  print_line("parameters", count_text(summary.values));
  print_line("size", fmt::format("{}, {:.2f} bits a weight", size_text(summary.bytes), summary.bits_per_weight()));
  if (!summary.adapter)
    print_line("chat template", summary.chat_template_bytes == 0 ? "none" : fmt::format("{} bytes", summary.chat_template_bytes));
  print_types(summary);
  print_object("hyper-parameters", summary.hyper_parameters, all);
  print_object("tokenizer", summary.tokenizer, all);
}

void print_tensors(std::span<const TensorEntry> tensors) {
  std::size_t width = 4;
  for (const TensorEntry& tensor : tensors) width = std::max(width, printable(tensor.name).size());
  fmt::print("\ntensors\n");
  for (const TensorEntry& tensor : tensors)
    fmt::print("  {:<{}}  {:<24} {:>14} bytes\n", printable(tensor.name), width,
               fmt::format("{}[{}]", tensor.type, fmt::join(tensor.shape, ",")), tensor.bytes);
}

json::Value summary_json(const ModelSummary& summary) {
  json::Value types = json::Value::array();
  for (const TypeShare& share : summary.types)
    types.push_back({{"type", share.type}, {"tensors", share.tensors}, {"values", share.values}, {"bytes", share.bytes}});
  json::Value out{{"format", summary.format},
                  {"architecture", summary.architecture},
                  {"name", summary.name},
                  {"parameters", summary.values},
                  {"bytes", summary.bytes},
                  {"bits_per_weight", summary.bits_per_weight()},
                  {"types", std::move(types)},
                  {"hyper_parameters", json::parse(summary.hyper_parameters, "hyper_parameters")},
                  {"tokenizer", json::parse(summary.tokenizer, "tokenizer")},
                  {"chat_template_bytes", summary.chat_template_bytes}};
  if (const auto& a = summary.adapter)
    out["adapter"] = {{"matrices", a->matrices}, {"least_rank", a->least_rank}, {"largest_rank", a->largest_rank}};
  return out;
}

json::Value tensors_json(std::span<const TensorEntry> tensors) {
  json::Value out = json::Value::array();
  for (const TensorEntry& tensor : tensors)
    out.push_back({{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.shape}, {"bytes", tensor.bytes}});
  return out;
}

/// Long arrays by their length and first elements.
json::Value metadata_json(std::span<const MetadataEntry> metadata, bool all) {
  json::Value out = json::Value::object();
  for (const MetadataEntry& entry : metadata) {
    json::Value whole = json::parse(entry.value, entry.key);
    if (all || entry.size <= longest_array) {
      out[entry.key] = std::move(whole);
      continue;
    }
    json::Value first = json::Value::array();
    for (std::size_t i = 0; i < most_elements; ++i) first.push_back(whole[i]);
    out[entry.key] = {{"elements", entry.size}, {"first", std::move(first)}};
  }
  return out;
}

void print_json(const json::Value& value) { fmt::print("{}\n", value.dump(2, ' ', false, json::Value::error_handler_t::replace)); }

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\x{:02x}", byte);
    else out += c;
  }
  return out;
}

void inspect_model(const ModelFile& file, const ModelView& view) {
  const std::vector<MetadataEntry> metadata = file.metadata();
  if (view.json) {
    json::Value out = summary_json(file.summary());
    out["file"] = file.name();
    if (!metadata.empty()) out["metadata"] = metadata_json(metadata, view.all);
    out["tensors"] = tensors_json(file.tensors());
    return print_json(out);
  }
  print_summary(file.summary(), view.all);
  if (!metadata.empty()) fmt::print("\nmetadata\n");
  for (const MetadataEntry& entry : metadata)
    fmt::print("  {:<40} {:<8} {}\n", printable(entry.key), entry.type, value_text(json::parse(entry.value, entry.key), view.all));
  if (view.tensors) print_tensors(file.tensors());
  fmt::print("\n{}: valid, {} tensors, {} bytes\n", file.name(), file.tensors().size(), file.summary().bytes);
}

}  // namespace rlx::command
