// What the machine can do at best, from 1 thread to all granted CPUs: f32 multiply-adds, reading memory, starting a shared loop.
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/fma_peak.h"
#include "backends/cpu/gemm/aligned_buffer.h"
#include "base/cpu_count.h"
#include "base/thread_pool.h"
#include "rlx/error.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace {

using namespace rlx;

constexpr std::int64_t line_words = 64 / sizeof(std::uint64_t);

/// Each adds up `lines` cache lines of every stream; the streams, `distance` words apart, are read side by side so that several prefetchers
/// are busy. Wide loads matter here: the fewer instructions a line takes, the more lines are under way at once.
using Reader = std::uint64_t (*)(const std::uint64_t* words, std::int64_t lines, std::int64_t distance);

template <int streams>
std::uint64_t read_portable(const std::uint64_t* words, std::int64_t lines, std::int64_t distance) {
  std::uint64_t sums[line_words] = {};
  for (const std::uint64_t* end = words + lines * line_words; words < end; words += line_words) {
    for (int stream = 0; stream < streams; ++stream) {
      for (std::int64_t w = 0; w < line_words; ++w) sums[w] += words[stream * distance + w];
    }
  }
  return std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
}

#ifdef __x86_64__
template <int streams>
__attribute__((target("avx2"))) std::uint64_t read_avx2(const std::uint64_t* words, std::int64_t lines, std::int64_t distance) {
  __m256i low = _mm256_setzero_si256(), high = low;
  for (const std::uint64_t* end = words + lines * line_words; words < end; words += line_words) {
    for (int stream = 0; stream < streams; ++stream) {
      const auto* line = reinterpret_cast<const __m256i*>(words + stream * distance);
      low = _mm256_add_epi64(low, _mm256_loadu_si256(line));
      high = _mm256_add_epi64(high, _mm256_loadu_si256(line + 1));
    }
  }
  std::uint64_t sums[line_words];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + line_words / 2), high);
  return std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
}

template <int streams>
__attribute__((target("avx512f"))) std::uint64_t read_avx512(const std::uint64_t* words, std::int64_t lines, std::int64_t distance) {
  __m512i sum = _mm512_setzero_si512();
  for (const std::uint64_t* end = words + lines * line_words; words < end; words += line_words) {
    for (int stream = 0; stream < streams; ++stream) sum = _mm512_add_epi64(sum, _mm512_loadu_si512(words + stream * distance));
  }
  std::uint64_t sums[line_words];
  _mm512_storeu_si512(sums, sum);
  return std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
}
#endif

template <int streams>
Reader reader(cpu::CpuLevel level) {
#ifdef __x86_64__
  if (level == cpu::CpuLevel::avx512) return read_avx512<streams>;
  if (level == cpu::CpuLevel::avx2) return read_avx2<streams>;
#endif
  (void)level;
  return read_portable<streams>;
}

/// Bytes per second of all threads together, each reading its own part of a buffer far larger than the caches.
template <int streams>
double read_bandwidth(ThreadPool& pool, const std::uint64_t* words, std::int64_t count, double budget) {
  const Reader read = reader<streams>(cpu::cpu_level());
  std::vector<std::int64_t> lines(static_cast<std::size_t>(pool.size()));  // read by each worker
  const double seconds = cpu::fastest_seconds(budget, [&] {
    pool.parallel_for(count, line_words, [&](std::int64_t begin, std::int64_t end, int worker) {
      std::int64_t stream_lines = (end - begin) / line_words / streams;
      stream_lines -= stream_lines % 2 == 0;  // an odd distance: streams a power of two apart would fight for one set of the cache
      volatile std::uint64_t sink = read(words + begin, stream_lines, stream_lines * line_words);
      (void)sink;
      lines[static_cast<std::size_t>(worker)] = stream_lines * streams;
    });
  });
  return 64.0 * static_cast<double>(std::accumulate(lines.begin(), lines.end(), std::int64_t{0})) / seconds;
}

/// Seconds that an empty loop over all workers takes when loops follow each other at once.
double loop_seconds(ThreadPool& pool, double budget) {
  constexpr int loops = 1000;
  const double seconds = cpu::fastest_seconds(budget, [&] {
    for (int i = 0; i < loops; ++i) pool.parallel_for(pool.size(), 1, [](std::int64_t, std::int64_t, int) {});
  });
  return seconds / loops;
}

int report(double budget, std::int64_t mebibytes, const std::string& json_path) {
  const cpu::CpuFeatures& features = cpu::cpu_features();
  nlohmann::json json{{"cpu", cpu::describe(features, cpu::cpu_level())}, {"granted_cpus", granted_cpus()}};
  fmt::print("{}, {} CPUs granted\n", cpu::describe(features, cpu::cpu_level()), granted_cpus());
  fmt::print("{:>7} {:>12} {:>10} {:>12} {:>12} {:>12} {:>10}\n", "threads", "level", "GFLOP/s", "1 str. GB/s", "4 str. GB/s",
             "8 str. GB/s", "loop us");
  const std::int64_t count = mebibytes * (1 << 20) / static_cast<std::int64_t>(sizeof(std::uint64_t));
  const cpu::AlignedBuffer buffer(static_cast<std::size_t>(count) * sizeof(std::uint64_t));
  auto* words = reinterpret_cast<std::uint64_t*>(buffer.data());
  for (std::int64_t i = 0; i < count; ++i) words[i] = static_cast<std::uint64_t>(i);  // pages that were never written share one of zeros
  for (int threads = 1; threads <= granted_cpus(); ++threads) {
    ThreadPool pool(threads);
    const double flops = cpu::fma_peak(pool, cpu::cpu_level(), budget);
    const std::vector<double> bytes{read_bandwidth<1>(pool, words, count, budget), read_bandwidth<4>(pool, words, count, budget),
                                    read_bandwidth<8>(pool, words, count, budget)};
    const double loop = loop_seconds(pool, budget);
    fmt::print("{:>7} {:>12} {:>10.1f} {:>12.1f} {:>12.1f} {:>12.1f} {:>10.2f}\n", threads, cpu::to_string(cpu::cpu_level()), flops / 1e9,
               bytes[0] / 1e9, bytes[1] / 1e9, bytes[2] / 1e9, loop * 1e6);
    json["peaks"].push_back({{"threads", threads},
                             {"f32_flops", flops},
                             {"read_bytes_per_s", {{"1_stream", bytes[0]}, {"4_streams", bytes[1]}, {"8_streams", bytes[2]}}},
                             {"loop_s", loop}});
  }
  if (!json_path.empty() && !(std::ofstream(json_path) << json.dump(2) << '\n')) fail("{}: cannot be written", json_path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Peak rates of this machine: f32 multiply-adds, memory reads, loop start");
  double budget = 0.5;
  std::int64_t mebibytes = 512;
  std::string json_path;
  app.add_option("--seconds", budget, "time for each figure")->check(CLI::PositiveNumber);
  app.add_option("--mebibytes", mebibytes, "size of the memory that is read; several times the last cache")->check(CLI::Range(1, 1 << 20));
  app.add_option("--json", json_path, "also write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    return report(budget, mebibytes, json_path);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
