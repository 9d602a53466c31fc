// Values, gradients and Hessian-vector products of layers against PyTorch's.
#include "vectors/torch_layers.h"
#include "vectors/torch_places.h"
#include "vectors/torch_recurrent.h"
#include "vectors/torch_spectra.h"

namespace rlx::test {
namespace {

std::vector<std::int64_t> list(const json::Value& p, const char* key) {
  if (!p.contains(key)) return {};
  if (p[key].is_number()) return {p[key].get<std::int64_t>()};
  return p[key].get<std::vector<std::int64_t>>();
}

/// A window or a stride over rows and columns; one number stands for both.
std::vector<std::int64_t> pair_of(const json::Value& p, const char* key) {
  std::vector<std::int64_t> values = list(p, key);
  if (values.size() == 1) values.push_back(values[0]);
  return values;
}

/// One bias for each channel, on axis 1.
Value with_bias(Value y, Value bias) {
  Dims shape(static_cast<std::size_t>(y.rank()), Dim(1));
  shape[1] = bias.dim(0);
  return y + reshape(bias, shape);
}

Values torch_conv(TorchOperands& x, const json::Value& p) {
  const auto groups = static_cast<std::int64_t>(number(p, "groups", 1));
  return {with_bias(conv(x["x"], x["w"], list(p, "stride"), list(p, "padding"), list(p, "dilation"), groups), x["b"])};
}
/// A kernel of 4 needs 3 elements of padding: 1 in front, 2 behind.
Values convolved_same(TorchOperands& x, const json::Value&) { return {with_bias(conv(pad(x["x"], {0, 0, 1}, {0, 0, 2}), x["w"]), x["b"])}; }
Values deconvolved(TorchOperands& x, const json::Value& p) {
  const auto groups = static_cast<std::int64_t>(number(p, "groups", 1));
  return {with_bias(
      conv_transpose(x["x"], x["w"], list(p, "stride"), list(p, "padding"), list(p, "output_padding"), list(p, "dilation"), groups),
      x["b"])};
}

Values max_pooled(TorchOperands& x, const json::Value& p) {
  return {max_pool(x["x"], pair_of(p, "kernel"), list(p, "stride"), list(p, "padding"), list(p, "dilation"), p.value("ceil_mode", false))};
}
Values mean_pooled(TorchOperands& x, const json::Value& p) {
  return {avg_pool(x["x"], pair_of(p, "kernel"), list(p, "stride"), list(p, "padding"), p.value("ceil_mode", false),
                   p["count_include_pad"].get<bool>())};
}

/// To the sizes, or by factors, which say nothing but the sizes where corners are aligned. PyTorch's cubic kernel has a = -0.5 with
/// antialiasing, -0.75 without.
TorchRule resized(ResizeMode mode) {
  return [mode](TorchOperands& x, const json::Value& p) {
    const bool antialias = p.value("antialias", false);
    ResizeOptions options{.mode = mode, .align_corners = p.value("align_corners", false), .antialias = antialias};
    if (antialias) options.cubic_a = -0.5;
    Dims shape;
    for (std::int64_t size : list(p, "size")) shape.push_back(size);
    if (!shape.empty()) return Values{resize(x["x"], shape, options)};
    options.scales = p["scale_factor"].get<std::vector<double>>();
    for (std::size_t i = 0; i < options.scales.size(); ++i)
      shape.push_back(
          static_cast<std::int64_t>(std::floor(static_cast<double>(x["x"].dim(static_cast<int>(i) + 2).value()) * options.scales[i])));
    if (options.align_corners) options.scales.clear();
    return Values{resize(x["x"], shape, options)};
  };
}

/// The shuffle of x, and the inverse applied to x under the shape of a shuffled one.
Values shuffled(TorchOperands& x, const json::Value& p) {
  const auto f = static_cast<std::int64_t>(number(p, "factor", 2));
  const Dim n = x["x"].dim(0), c = Dim(x["x"].dim(1).value() / (f * f)), h = x["x"].dim(2), w = x["x"].dim(3);
  const Value parts = transpose(reshape(x["x"], {n, c, f, f, h, w}), {0, 1, 4, 2, 5, 3});
  const Value back = transpose(reshape(x["x"], {n, c, h, f, w, f}), {0, 1, 3, 5, 2, 4});
  return {reshape(parts, {n, c, h * f, w * f}), reshape(back, {n, c * f * f, h, w})};
}

/// That parameter for rows and columns.
std::vector<std::int64_t> pair_or(const json::Value& p, const char* key, std::int64_t initial) {
  return p.contains(key) ? pair_of(p, key) : std::vector{initial, initial};
}
Values unfolded(TorchOperands& x, const json::Value& p) {
  const auto k = pair_of(p, "kernel"), stride = pair_or(p, "stride", 1), dilation = pair_or(p, "dilation", 1);
  const auto padding = pair_or(p, "padding", 0);
  const Dims around{0, 0, padding[0], padding[1]};
  const Value rows = window(pad(x["x"], around, around), 2, k[0], stride[0], dilation[0]);
  const Value both = window(rows, 4, k[1], stride[1], dilation[1]);  // N C oh kh ow kw
  return {reshape(transpose(both, {0, 1, 3, 5, 2, 4}), {both.dim(0), both.dim(1) * k[0] * k[1], both.dim(2) * both.dim(4)})};
}
Values folded(TorchOperands& x, const json::Value& p) {
  const auto k = pair_of(p, "kernel"), stride = pair_or(p, "stride", 1), dilation = pair_or(p, "dilation", 1);
  const auto padding = pair_or(p, "padding", 0), output = pair_of(p, "output");
  const auto padded = [&](std::size_t i) { return output[i] + 2 * padding[i]; };
  const auto count = [&](std::size_t i) { return Dim((padded(i) - dilation[i] * (k[i] - 1) - 1) / stride[i] + 1); };
  const Dims shape{x["x"].dim(0), Dim(x["x"].dim(1).value() / (k[0] * k[1])), k[0], k[1], count(0), count(1)};
  const Value both = transpose(reshape(x["x"], shape), {0, 1, 4, 2, 5, 3});
  const Value whole = fold(fold(both, 4, padded(1), stride[1], dilation[1]), 2, padded(0), stride[0], dilation[0]);
  return {slice_axis(slice_axis(whole, 2, padding[0], padding[0] + output[0]), 3, padding[1], padding[1] + output[1])};
}

Values index_added(TorchOperands& x, const json::Value& p) {
  return {scatter(x["x"], expand_dims(x["i"], {-1}), x["y"] * number(p, "alpha", 1), {{1}, {0}, {0}}, ScatterKind::add)};
}
/// x[i[r][c]][c] += y[r][c].
Values column_added(TorchOperands& x, const json::Value&) {
  const Value places = stack({x["i"], iota(x["i"], x["i"].shape(), i64, 1)}, -1);
  return {scatter(x["x"], places, x["y"], {{}, {0, 1}, {0, 1}}, ScatterKind::add)};
}

Values sorted(TorchOperands& x, const json::Value& p) {
  return sort({x["x"], iota(x["x"], x["x"].shape(), i64, 1)}, 1, 1, p.value("descending", false));
}
Values largest(TorchOperands& x, const json::Value& p) {
  const Values found = top_k(x["x"], p["k"].get<std::int64_t>());
  return {found[0], cast(found[1], i64)};
}
/// The gradient goes to one of the ties, the first.
Values largest_of_row(TorchOperands& x, const json::Value&) {
  const Value place = argmax(x["x"], 1, true);
  return {squeeze(take_along_axis(x["x"], place, 1), {1}), cast(squeeze(place, {1}), i64)};
}
/// The middle element, or the one before the middle.
Values lower_median(TorchOperands& x, const json::Value&) {
  const std::int64_t middle = (x["x"].dim(1).value() - 1) / 2;
  return {squeeze(slice_axis(sort({x["x"]})[0], 1, middle, middle + 1), {1})};
}

Values running_logsumexp(TorchOperands& x, const json::Value&) {
  const Value shift = stop_gradient(reduce_max(x["x"], {1}, true));
  return {log(cumsum(exp(x["x"] - shift), 1)) + shift};
}

/// Every expert on every token, weighted by the renewed probabilities of the two best.
Values mixture(TorchOperands& x, const json::Value&) {
  const Values best = top_k(softmax(matmul(x["x"], x["router"])), 2);
  const Value weights = best[0] / sum(best[0], {1}, true);
  const Value gate = einsum("tk,tke->te", {weights, one_hot(best[1], x["router"].dim(1).value())});
  return {einsum("te,tef,efd->td", {gate, silu(einsum("td,edf->tef", {x["x"], x["w1"]})), x["w2"]})};
}

/// Ours divides by the root of the key size, 4, and has an axis of heads.
Values delta_rule(TorchOperands& x, const json::Value&) {
  const auto one_head = [](Value v) { return expand_dims(v, {2}); };
  const Values y = gated_delta_net(one_head(x["q"]), one_head(x["k"]), one_head(x["v"]), one_head(x["g"]), one_head(x["beta"]));
  return {squeeze(y[0], {2}) * 2, squeeze(y[1], {1})};
}

std::map<std::string, TorchRule> rules() {
  std::map<std::string, TorchRule> all = torch_layers();
  all.insert(torch_places().begin(), torch_places().end());
  for (const char* name : {"conv2d", "conv2d_groups", "conv2d_depthwise", "conv2d_stride_dilation", "conv1d", "conv3d"})
    all[name] = torch_conv;
  for (const char* name : {"conv_transpose2d", "conv_transpose2d_groups", "conv_transpose1d", "conv_transpose3d"}) all[name] = deconvolved;
  all["conv1d_same"] = convolved_same;
  all["max_pool2d_ties"] = all["max_pool2d_ceil_dilation"] = max_pooled;
  all["max_pool2d_nan"] = [](auto& x, auto&) { return Values{max_pool(x["x"], {2, 2}, {1, 1})}; };
  all["avg_pool2d"] = all["avg_pool2d_no_pad_ceil"] = mean_pooled;
  all["interpolate_nearest"] = resized(ResizeMode::nearest);
  all["interpolate_nearest-exact"] = resized(ResizeMode::nearest_exact);
  for (const char* name : {"bilinear_centers", "bilinear_corners", "linear", "trilinear"})
    all["interpolate_" + std::string(name)] = resized(ResizeMode::linear);
  all["interpolate_bicubic_centers"] = all["interpolate_bicubic_corners"] = resized(ResizeMode::cubic);
  for (const char* name : {"antialias", "scale"}) {
    all["interpolate_bilinear_" + std::string(name)] = resized(ResizeMode::linear);
    all["interpolate_bicubic_" + std::string(name)] = resized(ResizeMode::cubic);
  }
  all["pixel_shuffle"] = shuffled;
  all["unfold"] = unfolded;
  all["fold"] = folded;
  all["gather"] = [](auto& x, auto&) { return Values{take_along_axis(x["x"], x["i"], 1)}; };
  all["index_select"] = [](auto& x, auto&) { return Values{take(x["x"], x["i"], 1)}; };
  all["index_add"] = index_added;
  all["scatter_add"] = column_added;
  all["dropout_mask"] = [](auto& x, auto& p) { return Values{select(x["m"], x["x"] / (1 - number(p, "p", 0)), scalar(x["x"], 0, f32))}; };
  for (const char* name : {"cumsum_0", "cumsum_1"})
    all[name] = [](auto& x, auto& p) { return Values{cumsum(x["x"], p["axis"].template get<std::int64_t>())}; };
  all["cumprod_zeros"] = [](auto& x, auto&) { return Values{cumprod(x["x"], 1)}; };
  all["logcumsumexp"] = running_logsumexp;
  all["sort"] = sorted;
  all["topk"] = largest;
  all["max_all_ties"] = [](auto& x, auto&) { return Values{reduce_max(x["x"], {1}), reduce_max(x["x"], {0, 1})}; };
  all["max_dim_ties"] = largest_of_row;
  all["prod_zeros"] = [](auto& x, auto&) { return Values{prod(x["x"], {1})}; };
  all["median"] = lower_median;
  all["cdist"] = [](auto& x, auto&) { return Values{norm(expand_dims(x["x"], {1}) - expand_dims(x["y"], {0}), {2})}; };
  all["bilinear"] = [](auto& x, auto&) { return Values{einsum("bi,oij,bj->bo", {x["x"], x["w"], x["y"]}) + x["b"]}; };
  all["moe_top2"] = mixture;
  all["mamba_scan"] = [](auto& x, auto&) { return selective_scan(x["x"], x["dt"], x["A"], x["B"], x["C"], x["D"]); };
  all["gated_delta_rule"] = delta_rule;
  all["masked_fill_where"] = [](auto& x, auto&) { return Values{masked_fill(x["x"], x["m"], 3), where(x["m"], x["x"], x["y"])}; };
  all["rnn_1"] = all["rnn_2_bidirectional"] = steps_first(recorded_rnn);
  all["gru_1"] = all["gru_2_bidirectional"] = steps_first(recorded_gru);
  all["lstm_1"] = all["lstm_2_bidirectional"] = steps_first(recorded_lstm);
  return all;
}

std::map<std::string, TorchRule> sequence_rules() {
  std::map<std::string, TorchRule> all;
  all["rnn_packed"] = batch_first(recorded_rnn);
  all["rnn_relu"] = batch_first(recorded_relu_rnn);
  all["gru_packed"] = all["gru_plain"] = batch_first(recorded_gru);
  all["lstm_packed"] = all["lstm_plain"] = batch_first(recorded_lstm);
  for (const char* name : {"centered", "short_window", "from_the_start", "twosided"}) all["stft_" + std::string(name)] = recorded_stft;
  all["mel_slaney"] = all["mel_htk"] = recorded_mel;
  all["log_mel_whisper"] = recorded_whisper;
  all["welch_peaks"] = all["welch_peaks_odd"] = recorded_welch;
  return all;
}

class TorchCase {
 public:
  TorchCase(const json::Value& entry, const SafetensorsFile& file) : entry_(entry), file_(file), name_(entry["name"].get<std::string>()) {
    // f32 sums of up to a hundred products, recorded in f32 or from f64; an offset of 1000 leaves f32 6e-5 of each element.
    tolerance_ = name_ == "layer_norm_offset" ? Tolerance{0, 2e-4} : Tolerance{4e-6, 4e-6};
  }

  /// `compiled`: null where the graph is for the host alone.
  void check(const TorchRule& rule, RecordedProgram* compiled) {
    for (const auto& [key, type] : entry_["in"].items()) x_[key] = graph_.input(key, file_.array(name_ + "/in/" + key));
    const Values y = rule(x_, entry_.contains("params") ? entry_["params"] : json::Value::object());
    for (std::size_t i = 0; i < entry_["out"].size(); ++i) {
      const Array wanted = recorded("out" + std::to_string(i));
      if (i < y.size()) graph_.expect("out" + std::to_string(i), y[i], wanted, tolerance_);
      else EXPECT_TRUE(is_integer(wanted.dtype())) << "no result " << i;  // the positions that pooling and cummax found
    }
    gradients(y);
    graph_.check(name_, compiled);
  }

 private:
  Array recorded(const std::string& key) const {
    const std::string precise = name_ + "/exact_" + key;
    return file_.array(file_.find(precise) ? precise : name_ + "/" + key);
  }

  void gradients(const Values& y) {
    const auto names = entry_["grad"].get<std::vector<std::string>>();
    if (names.empty()) return;
    Values outputs, cotangents, inputs, tangents;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::string key = "ct" + std::to_string(i);
      if (!file_.find(name_ + "/" + key)) continue;
      outputs.push_back(y[i]);
      cotangents.push_back(graph_.input(key, file_.array(name_ + "/" + key)));
    }
    const bool second = entry_.contains("hvp");
    for (const std::string& key : names) {
      inputs.push_back(x_.at(key));
      if (second) tangents.push_back(graph_.input("tan/" + key, file_.array(name_ + "/tan/" + key)));
    }
    const Values slopes = vjp(outputs, inputs, cotangents);
    for (std::size_t i = 0; i < names.size(); ++i) graph_.expect("grad/" + names[i], slopes[i], recorded("grad/" + names[i]), tolerance_);
    if (!second) return;
    const Values curved = jvp(slopes, inputs, tangents);
    for (std::size_t i = 0; i < names.size(); ++i) graph_.expect("hvp/" + names[i], curved[i], recorded("hvp/" + names[i]), tolerance_);
  }

  const json::Value& entry_;
  const SafetensorsFile& file_;
  std::string name_;
  Tolerance tolerance_;
  RecordedGraph graph_;
  TorchOperands x_;
};

// Every case of the file is checked, and every name of the table is the name of a case.
void check_cases(const std::string& name_of_file, const std::map<std::string, TorchRule>& all, bool compiled) {
  const SafetensorsFile file = SafetensorsFile::open(fixture("torch/" + name_of_file + ".safetensors"));
  const json::Value index = json::read_file(fixture("torch/" + name_of_file + ".json"));
  RecordedProgram program;
  std::set<std::string> names;
  for (const json::Value& entry : index["cases"]) {
    const auto name = entry["name"].get<std::string>();
    SCOPED_TRACE(name);
    names.insert(name);
    EXPECT_TRUE(all.contains(name)) << "not mapped";
    if (!all.contains(name)) continue;
    try {
      TorchCase(entry, file).check(all.at(name), compiled ? &program : nullptr);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  for (const auto& [name, rule] : all) EXPECT_TRUE(names.contains(name)) << name;
}

// Compiling these 108 graphs with their gradients takes minutes; the cases from JAX are run as kernels.
TEST(Torch, Backward) { check_cases("backward", rules(), false); }
TEST(Torch, Sequences) { check_cases("sequences", sequence_rules(), true); }

}  // namespace
}  // namespace rlx::test
