// Speed of the matrix product over f32, bf16 or 8-bit integers: shapes of one kind as shares of the multiply-add peak of such operands, and
// of reading the weights where those come from memory. All limits are measured in the same run.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/gemm/dot_products.h"
#include "backends/cpu/gemm/tune.h"
#include "backends/cpu/peaks/peaks.h"
#include "base/small_float.h"
#include "base/thread_pool.h"
#include "cases/cases.h"
#include "rlx/error.h"

namespace {

using namespace rlx;

enum class Weights { packed, strided };  // B packed beforehand, or (n, k) row by row as attention has its keys

struct Shape {
  std::int64_t batch, m, n, k;
  Weights b = Weights::packed;
};

/// As MiniLM has them, attention's included.
const std::vector<Shape> model_shapes{{1, 128, 384, 384},
                                      {1, 128, 1536, 384},
                                      {1, 128, 384, 1536},
                                      {1, 4096, 384, 384},
                                      {1, 384, 384, 384},
                                      {1, 1, 384, 1536},
                                      {12, 128, 128, 32, Weights::strided},
                                      {12, 128, 32, 128, Weights::strided}};

/// Mixes of 512 and more.
const std::vector<Shape> large_shapes{
    {1, 512, 512, 512},    {1, 512, 768, 768},    {1, 512, 3072, 768},   {1, 512, 768, 3072},   {1, 1024, 768, 768},
    {1, 1024, 3072, 768},  {1, 1024, 768, 3072},  {1, 1024, 1024, 1024}, {1, 1536, 1536, 1536}, {1, 2048, 2048, 2048},
    {1, 4096, 1024, 1024}, {1, 1024, 4096, 1024}, {1, 1024, 1024, 4096}, {1, 777, 1023, 1333},  {1, 1024, 1024, 1024, Weights::strided}};

/// Mixes of 1 to 256: squares on both sides of the sizes of tiles, thin and flat ones, ragged ones.
const std::vector<Shape> small_shapes{{1, 8, 8, 8},       {1, 16, 16, 16},    {1, 17, 17, 17},    {1, 31, 31, 31},    {1, 32, 32, 32},
                                      {1, 33, 33, 33},    {1, 48, 48, 48},    {1, 64, 64, 64},    {1, 65, 65, 65},    {1, 96, 96, 96},
                                      {1, 100, 100, 100}, {1, 127, 127, 127}, {1, 128, 128, 128}, {1, 129, 129, 129}, {1, 192, 192, 192},
                                      {1, 255, 255, 255}, {1, 256, 256, 256}, {1, 1, 256, 256},   {1, 2, 256, 256},   {1, 3, 255, 127},
                                      {1, 4, 64, 256},    {1, 5, 100, 200},   {1, 7, 100, 33},    {1, 8, 256, 64},    {1, 13, 77, 129},
                                      {1, 16, 256, 256},  {1, 32, 256, 32},   {1, 256, 1, 256},   {1, 256, 3, 64},    {1, 256, 16, 256},
                                      {1, 256, 256, 1},   {1, 256, 256, 7},   {1, 256, 64, 16},   {1, 200, 50, 10},   {1, 64, 256, 64},
                                      {1, 101, 203, 53},  {1, 1, 1, 256},     {1, 1, 17, 31},     {1, 250, 6, 3}};

/// Few rows against weights that come from memory.
const std::vector<Shape> memory_shapes{{1, 1, 4096, 4096},  {1, 2, 4096, 4096},  {1, 4, 4096, 4096},  {1, 8, 4096, 4096},
                                       {1, 1, 32000, 1024}, {1, 8, 32000, 1024}, {1, 1, 4096, 11008}, {1, 8, 4096, 11008}};

const std::map<std::string, std::vector<Shape>> sets{
    {"model", model_shapes}, {"large", large_shapes}, {"small", small_shapes}, {"memory", memory_shapes}};

template <class T>
constexpr const char* type_name = "f32";
template <>
constexpr const char* type_name<cpu::Bf16> = "bf16";
template <>
constexpr const char* type_name<cpu::F16> = "f16";
template <>
constexpr const char* type_name<std::int8_t> = "int8";

float number(float value, float /*of type*/) { return value; }
cpu::Bf16 number(float value, cpu::Bf16 /*of type*/) { return {static_cast<std::uint16_t>(encode(bf16_format, value))}; }
cpu::F16 number(float value, cpu::F16 /*of type*/) { return {static_cast<std::uint16_t>(encode(f16_format, value))}; }
std::int8_t number(float value, std::int8_t /*of type*/) { return static_cast<std::int8_t>(std::floor(256 * value)); }

/// The numbers of bench::fill; bf16 and f16 are those rounded, integers 256 times them rounded down.
template <class T>
std::vector<T> filled(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  bench::fill(values, seed);
  std::vector<T> result;
  result.reserve(values.size());
  for (float value : values) result.push_back(number(value, T()));
  return result;
}

/// B of a shape as often as is needed for none of it to be in a cache when its turn comes again; once where it need not come from memory.
template <class T>
struct Right {
  std::vector<T> values;  // (batch, n, k)
  std::vector<cpu::PackedB<T>> packed;
  std::size_t next = 0;

  Right(const Shape& shape, bool from_memory, ThreadPool& pool) : values(filled<T>(shape.batch * shape.n * shape.k, 3)) {
    if (shape.b == Weights::strided) return;
    const std::size_t copies = from_memory ? 1 + cpu::bytes_beyond_caches(1) / (values.size() * sizeof(T)) : 1;
    while (packed.size() < copies) packed.push_back(cpu::pack_b(matrix(shape), shape.batch, shape.k, shape.n, pool));
  }

  cpu::Matrix<T> matrix(const Shape& shape) const { return {values.data(), 1, shape.k, shape.n * shape.k}; }
  const cpu::PackedB<T>* turn() { return packed.empty() ? nullptr : &packed[next++ % packed.size()]; }
};

/// One product with its matrices, ready to run again and again.
template <class T>
struct Product {
  Shape shape;
  std::shared_ptr<Right<T>> right;
  std::vector<cpu::Left<T>> a;
  std::vector<cpu::Sum<T>> c;
  cpu::AlignedBuffer memory;
  cpu::GemmArgs<T> args;
  cpu::ProductChoice choice;
  std::optional<cpu::Columns<cpu::Left<T>>> columns;

  Product(const Shape& s, std::shared_ptr<Right<T>> b, bool tuned, ThreadPool& pool)
      : shape(s), right(std::move(b)), a(filled<cpu::Left<T>>(s.batch * s.m * s.k, 1)), c(static_cast<std::size_t>(s.batch * s.m * s.n)) {
    args.batch = s.batch, args.m = s.m, args.n = s.n, args.k = s.k;
    args.a = {a.data(), s.k, 1, s.m * s.k};
    args.b = right->matrix(s);
    args.c = c.data(), args.c_row_stride = s.n, args.c_batch_stride = s.m * s.n;
    args.packed_b = right->turn();
    choice = tuned ? cpu::fastest_choice(args, pool) : cpu::usual_choice(args, pool.size());
    args.choice = &choice;
    memory = cpu::AlignedBuffer(cpu::gemm_workspace(args, pool.size()));
    args.workspace = memory.data();
  }

  /// As sessions have them: few columns, whose weights lie in columns already. One column of f32 they leave to a generated kernel, which
  /// `rlx explain` times.
  bool has_dots() const {
    if constexpr (std::is_same_v<T, cpu::Left<T>>)
      return shape.batch == 1 && shape.b == Weights::packed && shape.n <= cpu::most_dot_columns && shape.k >= cpu::least_dot_depth &&
             args.kernel->dots[shape.n];
    return false;
  }
  void dots(ThreadPool& pool) {
    if constexpr (std::is_same_v<T, cpu::Left<T>>) {
      if (!columns) columns.emplace(shape.k, shape.n).pack(args.b);
      args.b = columns->matrix();
      cpu::dot_products(args, pool);
    }
  }

  void run(ThreadPool& pool) {
    args.packed_b = right->turn();
    if (has_dots()) return dots(pool);
    cpu::gemm(args, pool);
  }
};

template <class T>
bench::Case make_case(const std::shared_ptr<Product<T>>& product, bool from_memory, ThreadPool& pool) {
  const Shape& s = product->shape;
  bench::Case one;
  one.name = fmt::format("{}{} x {} x {}{}, {}", s.batch > 1 ? fmt::format("{} of ", s.batch) : "", s.m, s.n, s.k,
                         s.b == Weights::packed ? "" : ", B not packed", type_name<T>);
  one.about = {{"kind", "product"},
               {"type", type_name<T>},
               {"batch", s.batch},
               {"m", s.m},
               {"n", s.n},
               {"k", s.k},
               {"b", s.b == Weights::packed ? "packed" : "strided"},
               {"copies", std::max<std::size_t>(1, product->right->packed.size())}};
  one.arithmetic = std::is_same_v<T, cpu::F16> ? "f32" : type_name<T>;  // halves are widened
  one.flops = 2.0 * static_cast<double>(s.batch * s.m) * static_cast<double>(s.n * s.k);
  one.bytes_read = from_memory ? static_cast<double>(s.batch * s.n * s.k) * sizeof(T) : 0;
  one.run = [product, &pool] { product->run(pool); };
  one.result = [product] {
    const Shape& shape = product->shape;
    return Array::of<cpu::Sum<T>>({shape.batch, shape.m, shape.n}, product->c);
  };
  return one;
}

template <class T>
std::vector<bench::Case> make_cases(const std::vector<Shape>& shapes, bool from_memory, bool tune, ThreadPool& pool) {
  if (!cpu::has_micro_kernel<T>(cpu::cpu_level())) fail("no {} products on this CPU (see --list-types)", type_name<T>);
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<Right<T>>> shared;  // large ones are made once for all m
  std::vector<bench::Case> cases;
  for (const Shape& shape : shapes) {
    std::shared_ptr<Right<T>>& right = shared[{shape.n, shape.k}];
    if (!right || !from_memory) right = std::make_shared<Right<T>>(shape, from_memory, pool);
    cases.push_back(make_case(std::make_shared<Product<T>>(shape, right, false, pool), from_memory, pool));
    if (!tune) continue;
    const auto tuned = std::make_shared<Product<T>>(shape, right, true, pool);
    cases.push_back(make_case(tuned, from_memory, pool));
    cases.back().name += fmt::format(", tuned: {}", to_string(tuned->choice, tuned->args.kernel->units(shape.k)));
    cases.back().about["tuned"] = true;
  }
  return cases;
}

using MakeCases = std::vector<bench::Case> (*)(const std::vector<Shape>&, bool from_memory, bool tune, ThreadPool&);
const std::map<std::string, MakeCases> types{
    {"f32", make_cases<float>}, {"bf16", make_cases<cpu::Bf16>}, {"f16", make_cases<cpu::F16>}, {"int8", make_cases<std::int8_t>}};

/// Those that kernels of this CPU multiply.
void list_types() {
  const cpu::CpuLevel level = cpu::cpu_level();
  fmt::print("f32{}{}{}\n", cpu::has_micro_kernel<cpu::Bf16>(level) ? " bf16" : "", cpu::has_micro_kernel<cpu::F16>(level) ? " f16" : "",
             cpu::has_micro_kernel<std::int8_t>(level) ? " int8" : "");
}

std::vector<Shape> shapes_of(const std::vector<std::int64_t>& sizes, bool strided) {
  if (sizes.size() % 4 != 0) fail("--shapes: {} numbers (needed: batch m n k for each product)", sizes.size());
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < sizes.size(); i += 4) {
    shapes.push_back({sizes[i], sizes[i + 1], sizes[i + 2], sizes[i + 3], strided ? Weights::strided : Weights::packed});
  }
  return shapes;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Speed of the matrix product against the machine's limits");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  std::string set = "model", type = "f32";
  std::vector<std::int64_t> sizes;
  bool strided = false, tune = false, list = false;
  app.add_option("--set", set, "model: of MiniLM; large: 512 and more; small: 1 to 256, ragged; memory: few rows, weights from memory")
      ->check(CLI::IsMember(sets));
  app.add_option("--type", type, "of the elements: f32, bf16 (sums in f32), f16 (of B, beside A and sums in f32) or int8 (sums in i32)")
      ->check(CLI::IsMember(types));
  app.add_flag("--list-types", list, "print the types that this CPU multiplies, and end");
  app.add_option("--shapes", sizes, "batch m n k of one product or several, in place of a set")->check(CLI::Range(1, 1 << 20));
  app.add_flag("--tune", tune, "each product a second time, cut into blocks as is fastest by time");
  app.add_flag("--strided", strided, "with --shapes: B is not packed beforehand");
  return bench::run_command(app, argc, argv, [&] {
    if (list) return list_types();
    ThreadPool pool(options.threads);
    const std::vector<Shape> shapes = sizes.empty() ? sets.at(set) : shapes_of(sizes, strided);
    bench::run_cases(types.at(type)(shapes, sizes.empty() && set == "memory", tune, pool), options, pool);
  });
}
