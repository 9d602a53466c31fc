#include "backends/mlx/library/blocks.h"

#include "quant/block_format.h"
#include "quant/schemes.h"

namespace rlx::mlx {
namespace {

using namespace quant;

template <class Scheme>
mx::array values_of(const mx::array& bytes) {
  const int count = static_cast<int>(Scheme::values);
  if constexpr (Scheme::values > 1) {
    const mx::array values = Scheme::value(Blocks{bytes}, Numbers(mx::arange(0, count))).all;
    return mx::broadcast_to(values, {bytes.shape(0), count});
  } else {
    static constexpr std::pair<std::string_view, mx::Dtype> elements[] = {
        {"F32", mx::float32}, {"F16", mx::float16}, {"BF16", mx::bfloat16}, {"F64", mx::float64},
        {"I8", mx::int8},     {"I16", mx::int16},   {"I32", mx::int32},     {"I64", mx::int64},
    };
    const auto* const element = std::ranges::find(elements, Scheme::name, &std::pair<std::string_view, mx::Dtype>::first);
    return mx::astype(mx::view(mx::contiguous(bytes), element->second), mx::float32);
  }
}

struct Decoder {
  std::string_view type;
  mx::array (*values)(const mx::array& bytes);
};

template <class... Scheme>
constexpr std::array<Decoder, sizeof...(Scheme)> decoders_of(SchemeList<Scheme...>) {
  return {Decoder{Scheme::name, values_of<Scheme>}...};
}
constexpr auto decoders = decoders_of(Schemes{});

}  // namespace

mx::array decoded(std::string_view type, const mx::array& blocks) {
  const BlockFormat& format = *find_block_format(type);
  const int bytes = static_cast<int>(format.bytes);
  mx::Shape shape = blocks.shape();
  shape.back() = shape.back() / bytes * static_cast<int>(format.values);
  const mx::array flat = mx::reshape(blocks, {static_cast<int>(blocks.size() / static_cast<std::size_t>(bytes)), bytes});
  return mx::reshape(std::ranges::find(decoders, format.name, &Decoder::type)->values(flat), shape);
}

}  // namespace rlx::mlx
