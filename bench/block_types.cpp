// Decoding and encoding of GGUF's block types on one thread. A row is encoded as often as it takes; its values lie in the nearest cache.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "cases/cases.h"
#include "quant/block_format.h"
#include "rlx/error.h"

namespace {

using namespace rlx;

struct Figures {
  double decode_gb = 0, encode_gb = 0, weighted_gb = 0;  // of f32 values a second, in 10^9 bytes
};

constexpr std::size_t columns = 4096;

Figures measure(const BlockFormat& format, double seconds) {
  std::vector<float> row(columns), importance(columns);
  bench::fill(row, 1);
  bench::fill(importance, 3);
  for (float& weight : importance) weight += 0.5f;
  std::vector<std::byte> blocks(columns / static_cast<std::size_t>(format.values) * static_cast<std::size_t>(format.bytes));
  const auto rate = [&](auto run) {
    bench::Case one;
    one.run = run;
    return columns * sizeof(float) / bench::times_of(one, seconds).fastest / 1e9;
  };
  Figures figures;
  figures.encode_gb = rate([&] { format.encode(row.data(), nullptr, blocks.data(), columns); });
  figures.weighted_gb = rate([&] { format.encode(row.data(), importance.data(), blocks.data(), columns); });
  figures.decode_gb = rate([&] { format.decode(blocks.data(), row.data(), columns); });
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Decoding and encoding of GGUF's block types on one thread");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  for (const char* const name : {"--serve", "--threads", "--rounds"}) app.remove_option(app.get_option(name));
  std::vector<std::string> names;
  app.add_option("--type", names, "only these, e.g. Q4_K");
  return bench::run_command(app, argc, argv, [&] {
    std::vector<const BlockFormat*> formats;
    for (const std::string& name : names) {
      formats.push_back(find_block_format(name));
      if (formats.back() == nullptr) fail("--type: '{}' is no block type (e.g. Q4_K)", name);
    }
    if (names.empty()) {
      for (const BlockFormat& format : block_formats()) formats.push_back(&format);
    }
    nlohmann::json rows = nlohmann::json::array();
    fmt::print("{:8} {:>14} {:>14} {:>20}\n", "type", "decode, GB/s", "encode, GB/s", "with importance");
    for (const BlockFormat* const format : formats) {
      const auto [decode, encode, weighted] = measure(*format, options.seconds / 5);
      fmt::print("{:8} {:14.2f} {:14.3f} {:20.3f}\n", format->name, decode, encode, weighted);
      rows.push_back({{"type", format->name}, {"decode_gb_s", decode}, {"encode_gb_s", encode}, {"encode_weighted_gb_s", weighted}});
    }
    bench::write_json(options, {{"command", options.command}, {"columns", columns}, {"types", rows}});
  });
}
