// Whether packed weights should be kept on disk: making panels from weights in memory, as a new process does, beside reading as many bytes
// of a mapped file that the page cache holds.
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "backends/cpu/gemm/packed_b.h"
#include "backends/cpu/peaks/peaks.h"
#include "base/files/file_writer.h"
#include "base/files/mapped_file.h"
#include "cases/cases.h"

namespace {

using namespace rlx;

// The weights of BERT-large's feed-forward half, as checkpoints have them: (out, in).
constexpr std::int64_t out = 4096, in = 1024;
constexpr std::size_t bytes = out * in * sizeof(float);

/// More matrices than caches hold, so that each is in memory when its turn comes again.
std::size_t matrices() { return 1 + cpu::bytes_beyond_caches(1) / bytes; }

bench::Case packing(ThreadPool& pool) {
  struct Weights {
    std::vector<float> values;
    std::size_t next = 0;
  };
  const auto weights = std::make_shared<Weights>(Weights{std::vector<float>(matrices() * out * in), 0});
  bench::fill(weights->values, 1);
  bench::Case one;
  one.name = fmt::format("pack {} x {}, f32", out, in);
  one.bytes_read = one.bytes_written = bytes;
  one.run = [weights, &pool] {
    const float* const next = weights->values.data() + weights->next++ % matrices() * (out * in);
    cpu::pack_b(cpu::Matrix<float>{next, 1, in}, 1, in, out, pool);
  };
  return one;
}

/// Maps a file of as many and sums one of them, as a process would whose first product reads panels from there.
bench::Case reading(const std::filesystem::path& path, ThreadPool& pool) {
  const auto next = std::make_shared<std::size_t>(0);
  bench::Case one;
  one.name = "map as many bytes of a file and read them";
  one.bytes_read = bytes;
  one.run = [path, next, &pool] {
    const MappedFile file = MappedFile::open(path);
    const auto* const values = reinterpret_cast<const std::uint64_t*>(file.bytes().data() + (*next)++ % matrices() * bytes);
    std::atomic<std::uint64_t> total = 0;
    pool.parallel_for(bytes / sizeof *values, 1 << 15, [&](std::int64_t begin, std::int64_t end, int) {
      total += std::accumulate(values + begin, values + end, std::uint64_t{0});
    });
  };
  return one;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Packing weights against reading packed ones from a file");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  app.remove_option(app.get_option("--serve"));
  return bench::run_command(app, argc, argv, [&] {
    ThreadPool pool(options.threads);
    const std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("rlx_bench_pack_{}", getpid());
    write_file(path, std::vector<std::byte>(matrices() * bytes, std::byte{1}));
    bench::run_cases({packing(pool), reading(path, pool)}, options, pool);
    std::filesystem::remove(path);
  });
}
