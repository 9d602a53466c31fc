#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "backends/cpu/execution/tuned_choices.h"
#include "backends/cpu/gemm/tune.h"
#include "fuzz_folder.h"

namespace {

using Floats = std::vector<float>;
constexpr std::int64_t rows = 37, columns = 70, depth = 300;

Floats numbers(std::int64_t count) {
  Floats values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 13) - 6);
  return values;
}

Floats product(rlx::cpu::GemmArgs<float> args, const rlx::cpu::ProductChoice& choice, rlx::ThreadPool& pool) {
  Floats c(rows * columns);
  args.c = c.data(), args.c_row_stride = columns, args.choice = &choice;
  rlx::cpu::gemm(args, pool);
  return c;
}

}  // namespace

/// The input is a choice as a file keeps it. What is taken for possible gives the product.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  static rlx::ThreadPool pool(2);
  static const Floats a = numbers(rows * depth), b = numbers(depth * columns);
  static const rlx::cpu::GemmArgs<float> args{
      .m = rows, .n = columns, .k = depth, .a = {a.data(), depth, 1, 0}, .b = {b.data(), columns, 1, 0}};
  static const rlx::cpu::ProductChoice usual = rlx::cpu::usual_choice(args, 2);
  static const Floats wanted = product(args, usual, pool);

  constexpr rlx::cpu::ProductKey key{};
  std::string reason;
  rlx::ObjectCache(folder.path() / "tuned")
      .store(fmt::format("fuzz: product {}", fmt::join(key, " ")), {reinterpret_cast<const char*>(data), size}, reason);
  rlx::cpu::TunedChoices choices(folder.path(), "fuzz");
  const auto choice =
      choices.get(key, [](const rlx::cpu::ProductChoice& known) { return rlx::cpu::is_possible(known, args); }, [] { return usual; });
  if (product(args, choice, pool) != wanted) __builtin_trap();
  return 0;
}
