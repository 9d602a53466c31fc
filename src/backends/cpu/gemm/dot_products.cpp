#include "backends/cpu/gemm/dot_products.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t most_rows = 128;        // of a block of C
constexpr std::int64_t depth_at_once = 65536;  // a multiple of every line

/// A product cut into blocks of rows and parts of depth; all parts of an element are added up in the end.
template <class T>
class DotProducts {
 public:
  DotProducts(const GemmArgs<T>& args, ThreadPool& pool)
      : args_(args), pool_(pool), kernel_(*args.kernel), parts_(std::max<std::int64_t>(divide_up(args.k, depth_at_once), 1)) {
    blocks_ = std::max(divide_up(args.m, most_rows), std::min<std::int64_t>(pool.size(), divide_up(args.m, 4)));
  }

  void run() {
    const double cost = static_cast<double>(divide_up(args_.m, blocks_) * units_of<T>(std::min(args_.k, depth_at_once)) * args_.n);
    pool_.parallel_for(args_.batch * blocks_ * parts_, grain_of(cost), [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t task = begin; task < end; ++task) {
        const Place place = place_of(task / parts_);
        if (parts_ == 1) finish(place, [&](Sum<T>* c, std::int64_t row, std::int64_t col) { multiply(place, 0, c, row, col); });
        else multiply(place, task % parts_, partial(place, task % parts_), args_.n, 1);
      }
    });
    if (parts_ == 1) return;
    const double sums = static_cast<double>(divide_up(args_.m, blocks_) * args_.n * parts_);
    pool_.parallel_for(args_.batch * blocks_, grain_of(sums), [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t block = begin; block < end; ++block) {
        const Place place = place_of(block);
        finish(place, [&](Sum<T>* c, std::int64_t row, std::int64_t col) { add_parts(place, c, row, col); });
      }
    });
  }

 private:
  using Added = std::conditional_t<std::is_integral_v<Sum<T>>, std::uint32_t, Sum<T>>;  // sums of integers wrap around

  struct Place {
    std::int64_t item;
    Range rows;
  };

  Place place_of(std::int64_t block) const { return {block / blocks_, EvenParts(args_.m, blocks_)[block % blocks_]}; }

  /// The sums of a part of the depth, with these strides from row to row and from column to column.
  void multiply(const Place& place, std::int64_t part, Sum<T>* c, std::int64_t row, std::int64_t col) const {
    const std::int64_t from = part * depth_at_once, depth = std::min(args_.k - from, depth_at_once);
    const T* const a = args_.a.item(place.item) + place.rows.begin * args_.a.row_stride + from;
    const T* const b = args_.b.item(place.item) + from;
    kernel_.dots[args_.n](depth, a, args_.a.row_stride, place.rows.size(), b, args_.b.col_stride, c, row, col);
  }

  /// Has `compute` write a block of C where it goes, or where the epilogue takes it.
  void finish(const Place& place, const auto& compute) const {
    const std::int64_t rows = place.rows.size();
    if (!args_.epilogue) {
      const std::int64_t item = args_.c_batch_offsets ? args_.c_batch_offsets[place.item] : place.item * args_.c_batch_stride;
      return compute(args_.c + item + place.rows.begin * args_.c_row_stride, args_.c_row_stride, 1);
    }
    alignas(AlignedBuffer::cache_line) Sum<T> tile[most_dot_columns * most_rows];
    const bool turned = args_.epilogue_by_columns;
    compute(tile, turned ? 1 : args_.n, turned ? rows : 1);
    args_.epilogue(args_.epilogue_context, tile, turned ? rows : args_.n, place.item, place.rows.begin, rows, 0, args_.n);
  }

  /// The place of a block's sums of a part, by rows.
  Sum<T>* partial(const Place& place, std::int64_t part) const {
    const std::int64_t row = (place.item * args_.m + place.rows.begin) * parts_ + part * place.rows.size();
    return reinterpret_cast<Sum<T>*>(args_.workspace) + row * args_.n;
  }

  void add_parts(const Place& place, Sum<T>* c, std::int64_t row, std::int64_t col) const {
    for (std::int64_t r = 0; r < place.rows.size(); ++r)
      for (std::int64_t i = 0; i < args_.n; ++i) {
        Added sum = 0;
        for (std::int64_t part = 0; part < parts_; ++part) sum += static_cast<Added>(partial(place, part)[r * args_.n + i]);
        c[r * row + i * col] = static_cast<Sum<T>>(sum);
      }
  }

  const GemmArgs<T>& args_;
  ThreadPool& pool_;
  const MicroKernel<T>& kernel_;
  const std::int64_t parts_;
  std::int64_t blocks_;  // of each item
};

}  // namespace

template <class T>
std::size_t dot_products_workspace(const GemmArgs<T>& args) {
  const std::int64_t parts = divide_up(args.k, depth_at_once);
  if (parts <= 1) return 0;
  const std::int64_t sizes[] = {args.batch, args.m, args.n, parts, sizeof(Sum<T>)};
  const auto bytes = checked_product(sizes);
  if (!bytes) fail("dot products: batch {}, m {}, n {}, k {} take more bytes than 64 bits count", args.batch, args.m, args.n, args.k);
  return static_cast<std::size_t>(*bytes);
}

template <class T>
void dot_products(const GemmArgs<T>& args, ThreadPool& pool) {
  if (args.batch == 0 || args.m == 0) return;
  GemmArgs<T> own = args;
  const AlignedBuffer workspace(args.workspace ? 0 : dot_products_workspace(args));
  if (!own.workspace) own.workspace = workspace.data();
  DotProducts<T>(own, pool).run();
}

template <class T>
std::int64_t Columns<T>::stride_of(std::int64_t k) {
  constexpr std::int64_t line = AlignedBuffer::cache_line / sizeof(T);
  return (divide_up(k, line) | 1) * line;  // an odd number of lines: columns then share no sets of a cache
}

template <class T>
std::int64_t Columns<T>::bytes_of(std::int64_t k, std::int64_t n) {
  const auto bytes = checked_product(std::array<std::int64_t, 3>{stride_of(k), n, sizeof(T)});
  if (!bytes) fail("columns: k {}, n {} take more bytes than 64 bits count", k, n);
  return *bytes;
}

template <class T>
Columns<T>::Columns(std::int64_t k, std::int64_t n, std::byte* memory) : k_(k), n_(n), memory_(memory) {
  if (!memory) own_ = take_piece(static_cast<std::size_t>(bytes_of(k, n))), memory_ = own_.get();
}

template <class T>
void Columns<T>::pack(const Matrix<T>& b) {
  for (std::int64_t col = 0; col < n_; ++col) {
    T* to = reinterpret_cast<T*>(memory_) + col * stride_of(k_);
    for (std::int64_t step = 0; step < k_; ++step) *to++ = b.item(0)[step * b.row_stride + col * b.col_stride];
  }
}

template void dot_products(const GemmArgs<float>&, ThreadPool&);
template void dot_products(const GemmArgs<double>&, ThreadPool&);
template void dot_products(const GemmArgs<Bf16>&, ThreadPool&);
template void dot_products(const GemmArgs<std::int8_t>&, ThreadPool&);
template std::size_t dot_products_workspace(const GemmArgs<float>&);
template std::size_t dot_products_workspace(const GemmArgs<double>&);
template std::size_t dot_products_workspace(const GemmArgs<Bf16>&);
template std::size_t dot_products_workspace(const GemmArgs<std::int8_t>&);
template class Columns<float>;
template class Columns<double>;
template class Columns<Bf16>;
template class Columns<std::int8_t>;

}  // namespace rlx::cpu
