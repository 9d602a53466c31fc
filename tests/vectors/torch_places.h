#pragma once
#include "vectors/torch_layers.h"

// What reads or writes at computed places: adaptive pooling, grid sampling, scatters, bags of embeddings, running extremes.
namespace rlx::test {

inline Dims dims_of(const json::Value& sizes, std::size_t first = 0) {
  const auto numbers = sizes.get<std::vector<std::int64_t>>();
  return {numbers.begin() + static_cast<std::ptrdiff_t>(first), numbers.end()};
}

/// The value of the enumeration E with the given name.
template <class E>
E named_value(std::string_view word) {
  const auto words = enum_words(E{});
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) fail("'{}' is not expected here", word);
  return static_cast<E>(found - words.begin());
}

inline Values grid_sampled(TorchOperands& x, const json::Value& p) {
  const auto mode = p["mode"].get<std::string>();
  return {grid_sample(x["x"], x["grid"],
                      named_value<GridMode>(mode == "bilinear"  ? "linear"
                                            : mode == "bicubic" ? "cubic"
                                                                : mode),
                      named_value<GridPadding>(p["padding"].get<std::string>()), p["align_corners"].get<bool>())};
}

inline Values scatter_reduced(TorchOperands& x, const json::Value& p) {
  const auto name = p["reduce"].get<std::string>();
  const auto reduce = named_value<ScatterReduceKind>(name == "amax" ? "max" : name == "amin" ? "min" : name);
  return {scatter_reduce(x["x"], x["i"], x["y"], 0, reduce, p["include_self"].get<bool>())};
}

inline Values bagged(TorchOperands& x, const json::Value& p) {
  return {embedding_bag(x["w"], x["i"], x["offsets"], named_value<BagMode>(p["mode"].get<std::string>()))};
}

/// The largest so far, read at its last position: that one takes the gradient. Ours shares it among ties, as JAX does.
inline Values cummax_of_last_tie(TorchOperands& x, const json::Value&) {
  const Value v = x["x"], position = iota(v, v.shape(), i64, 1), zero = scalar(v, 0, i64);
  const Value place = cummax(select(ge(v, cummax(v, 1)), position, zero), 1);
  return {take_along_axis(v, place, 1), place};
}

inline const std::map<std::string, TorchRule>& torch_places() {
  static const std::map<std::string, TorchRule> all = [] {
    std::map<std::string, TorchRule> rules{
        {"adaptive_avg_pool2d", [](auto& x, auto& p) { return Values{adaptive_avg_pool(x["x"], dims_of(p["output"]))}; }},
        {"adaptive_max_pool2d", [](auto& x, auto& p) { return Values{adaptive_max_pool(x["x"], dims_of(p["output"]))}; }},
        {"interpolate_area", [](auto& x, auto& p) { return Values{adaptive_avg_pool(x["x"], dims_of(p["size"]))}; }},
        {"lp_pool2d",
         [](auto& x, auto& p) {
           const auto window = p["kernel"].template get<std::int64_t>();
           return Values{lp_pool(x["x"], number(p, "norm", 2), {window, window})};
         }},
        {"affine_grid", [](auto& x, auto& p) { return Values{affine_grid(x["theta"], dims_of(p["size"], 2))}; }},
        {"cummax", cummax_of_last_tie},
    };
    for (const std::string mode : {"bilinear", "nearest", "bicubic"})
      for (const std::string padding : {"zeros", "border", "reflection"}) rules["grid_sample_" + mode + "_" + padding] = grid_sampled;
    for (const std::string reduce : {"prod", "mean", "amax", "amin"})
      for (const std::string self : {"self", "noself"}) rules["scatter_reduce_" + reduce + "_" + self] = scatter_reduced;
    for (const std::string mode : {"sum", "mean", "max"}) rules["embedding_bag_" + mode] = bagged;
    return rules;
  }();
  return all;
}

}  // namespace rlx::test
