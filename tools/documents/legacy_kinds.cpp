#include "documents/legacy_kinds.h"

#include <algorithm>

#include "ir/op.h"

namespace rlx::command {
namespace {

constexpr Derivation op = Derivation::op, gradient = Derivation::gradient, fusion = Derivation::fusion, extension = Derivation::extension;

constexpr LegacyKind kinds[] = {
    {"Input", op, "input", "role=input"},
    {"Param", op, "input", "role=param; the other role is state"},
    {"Constant", op, "constant", ""},

    {"Activation", op, "gelu gelu_tanh silu relu sigmoid tanh exp log sqrt rsqrt neg abs sin cos tan atan round",
     "one op for each of its kinds"},
    {"Cast", op, "cast", ""},
    {"Where", op, "select", "builder where; the condition is bool, or not 0"},
    {"Binary", op, "add sub mul div max min pow", "builders promote and broadcast"},
    {"Compare", op, "eq ne lt le gt ge", ""},

    {"ComplexNormSq", op, "real imag mul add", "real(z)^2 + imag(z)^2"},
    {"Conjugate", op, "real imag neg complex", "complex(real(z), -imag(z))"},

    {"MatMul", op, "dot", "builder matmul; batch dimensions broadcast"},
    {"DotGeneral", op, "dot", "every contraction and batch axis"},
    {"LoraMatMul", op, "lora_matmul", ""},

    {"Reshape", op, "reshape", "the number of elements is checked"},
    {"Transpose", op, "transpose", "the permutation is checked"},
    {"Narrow", op, "slice", "builder slice_axis; dynamic_slice where the start is computed"},
    {"Concat", op, "concat", "the other axes are compared"},
    {"Expand", op, "broadcast", ""},
    {"Gather", op, "gather", "builder take; the same result on every axis: x[:axis], indices, x[axis + 1:]"},
    {"ScatterAdd", op, "scatter", "op=add; indices are integers"},

    {"Reduce", op, "reduce mean", "sum, max, min, prod are op= of reduce"},
    {"Softmax", op, "softmax", ""},
    {"Cumsum", op, "cumulative", "builder cumsum, any axis"},
    {"TopK", op, "top_k", "positions are integers and a second result"},

    {"LayerNorm", op, "layer_norm", "any axes; gamma and beta may be left out"},
    {"RmsNorm", op, "rms_norm", ""},
    {"GroupNorm", op, "group_norm", ""},
    {"LayerNorm2d", op, "layer_norm", "builder layer_norm_2d: over the channel axis"},

    {"Attention", op, "attention", "operands (B, H, S, D), never guessed; fewer key heads than query heads are repeated inside"},
    {"Rope", op, "rope", "both styles; positions are an operand"},
    {"AxialRope2d", op, "axial_rope_2d", ""},

    {"Conv", op, "conv", "1 to 3 spatial dimensions"},
    {"ConvTranspose2d", op, "conv", "builder conv_transpose: lhs_dilation is the stride"},
    {"Pool", op, "max_pool avg_pool sum_pool", "other reductions: window, then reduce"},
    {"ResizeNearest2x", op, "resize", "builder resize_nearest_2x"},

    {"Quantize", op, "quantize", "to every integer width"},
    {"Dequantize", op, "dequantize", ""},
    {"FakeQuantize", op, "fake_quantize", "the builder's options choose the derivative and where the scale comes from"},
    {"FakeQuantizeLSQ", op, "fake_quantize_lsq", ""},
    {"DequantMatMul", op, "dequant_matmul", "codes with a scale for each group along K"},
    {"QMatMul", op, "q_matmul", ""},
    {"QConv2d", op, "q_conv", ""},

    {"GroupedMatMul", op, "grouped_matmul", "experts are integers"},
    {"DequantGroupedMatMul", op, "dequantize grouped_matmul", "codes with scales"},
    {"DequantMoEWeights", op, "dequantize", "codes with scales"},

    {"SelectiveScan", op, "selective_scan", "the last state is a second result"},
    {"GatedDeltaNet", op, "gated_delta_net", "the last state is a second result; no operand is changed"},

    {"DenseSolve", op, "solve", ""},
    {"BatchedDenseSolve", op, "solve", ""},
    {"Fft", op, "fft", ""},
    {"Sample", op, "sample_token", "random numbers are an operand, so a run can be repeated"},
    {"SoftmaxCrossEntropyWithLogits", op, "nll", "builder cross_entropy: logits=true; labels are integers"},

    {"If", op, "cond", ""},
    {"While", op, "while", "every carried value is a result"},
    {"Scan", op, "scan", "the last carry and the stacked values are results; in both modes of differentiation"},

    {"ReluBackward", gradient, "relu", ""},
    {"ActivationBackward", gradient, "gelu gelu_tanh silu relu sigmoid tanh exp log sqrt rsqrt neg abs sin cos tan atan round", ""},
    {"FakeQuantizeBackward", gradient, "fake_quantize", ""},
    {"FakeQuantizeLSQBackwardX", gradient, "fake_quantize_lsq", ""},
    {"FakeQuantizeLSQBackwardScale", gradient, "fake_quantize_lsq", ""},
    {"ComplexNormSqBackward", gradient, "real imag mul add", ""},
    {"MaxPool2dBackward", gradient, "max_pool", ""},
    {"Conv2dBackwardInput", gradient, "conv", "a conv with lhs_dilation"},
    {"Conv2dBackwardWeight", gradient, "conv", "a conv that contracts the batch"},
    {"SoftmaxCrossEntropyBackward", gradient, "nll", ""},
    {"AttentionBackward", gradient, "attention", "by q, k and v in one pass"},
    {"LayerNormBackwardInput", gradient, "layer_norm", ""},
    {"LayerNormBackwardGamma", gradient, "layer_norm", ""},
    {"RmsNormBackwardInput", gradient, "rms_norm", ""},
    {"RmsNormBackwardGamma", gradient, "rms_norm", ""},
    {"RmsNormBackwardBeta", gradient, "rms_norm", ""},
    {"GroupNormBackwardInput", gradient, "group_norm", ""},
    {"GroupNormBackwardGamma", gradient, "group_norm", ""},
    {"GroupNormBackwardBeta", gradient, "group_norm", ""},
    {"RopeBackward", gradient, "rope", ""},
    {"CumsumBackward", gradient, "cumulative", "the same, from the other end"},
    {"GatherBackward", gradient, "gather", "a scatter with op=add"},
    {"ScanBackward", gradient, "scan", "a scan from the other end"},
    {"ScanBackwardXs", gradient, "scan", "the stacked values of the same scan"},

    {"ElementwiseRegion", fusion, "add sub mul div max min pow select cast eq ne lt le gt ge exp log sqrt tanh",
     "and every other scalar op; no limit of inputs"},
    {"FusedMatMulBiasAct", fusion, "dot add gelu relu silu", "the epilogue of a product"},
    {"FusedSwiGLU", fusion, "slice swiglu", ""},
    {"FusedResidualLN", fusion, "add layer_norm", ""},
    {"FusedResidualRmsNorm", fusion, "add rms_norm", ""},
    {"FusedAttentionBlock", fusion, "linear rope attention", "several kernels, as few as the cut leaves"},
    {"FusedTransformerLayer", fusion, "linear attention layer_norm gelu", "several kernels, as few as the cut leaves"},

    {"Custom", extension, "", "a struct with the op's rules, registered by Op<T>"},
    {"CustomFn", op, "call", "custom_jvp, custom_vjp and custom_vmap"},

    {"GaussianSplatRender", op, "gaussian_splat", ""},
    {"GaussianSplatRenderBackward", gradient, "gaussian_splat", ""},
    {"GaussianSplatPrepare", op, "gaussian_splat", ""},
    {"GaussianSplatRasterize", op, "gaussian_splat", ""},

    {"StopGradient", op, "stop_gradient", ""},
    {"BatchNormInference", op, "batch_norm", "the channel axis is an option"},
    {"BatchNormInferenceBackwardInput", gradient, "batch_norm", ""},
    {"BatchNormInferenceBackwardGamma", gradient, "batch_norm", ""},
    {"BatchNormInferenceBackwardBeta", gradient, "batch_norm", ""},
    {"TransformRegion", fusion, "reshape transpose slice broadcast reverse pad resize", "index maps are read through, never copied"},
    {"BatchElementwiseRegion", fusion, "add sub mul div select cast", "an elementwise kernel over one more axis"},
    {"RngNormal", op, "random_bits", "builder random_normal; the key is an operand"},
    {"RngUniform", op, "random_bits", "builder random_uniform; the key is an operand"},
    {"Im2Col", op, "window", "a view; rows by transpose and reshape"},
    {"LogMel", op, "log_mel", "in the form frames; of what rfft or stft gives"},
    {"LogMelBackward", gradient, "log_mel", ""},
    {"WelchPeaks", op, "welch_peaks", "of what stft gives; powers and bins are two results"},
    {"FftButterflyStage", fusion, "fft", ""},

    {"Lstm", op, "lstm", "the last states are results"},
    {"Gru", op, "gru", "the last state is a result"},
    {"Rnn", op, "rnn", "the last state is a result"},
    {"Mamba2", op, "selective_scan", "delta and A repeated over the channels of a head"},

    {"Fma", op, "fma", ""},
    {"Reverse", op, "reverse", "builder flip"},
    {"ArgMax", op, "argmax", "positions are integers"},
    {"ArgMin", op, "argmin", "positions are integers"},
    {"SoftmaxCrossEntropy", op, "cross_entropy_dense", ""},
    {"ScaledMatMul", op, "scaled_matmul", "formats f8e4m3 and f8e5m2"},
    {"ScaledQuantize", op, "reduce div cast", "builder scaled_quantize, its first result; formats f8e4m3 and f8e5m2"},
    {"ScaledQuantScale", op, "reduce div", "builder scaled_quantize, its second result"},
    {"ScaledDequantize", op, "cast mul", "codes as f32, times their scale"},
};

}  // namespace

std::span<const LegacyKind> legacy_kinds() { return kinds; }

std::vector<std::string_view> ops_of(const LegacyKind& kind) {
  std::vector<std::string_view> names;
  for (std::string_view rest = kind.ops; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    names.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

std::vector<std::string_view> missing_ops(const LegacyKind& kind) {
  std::vector<std::string_view> missing;
  for (std::string_view name : ops_of(kind))
    if (op_registry().count(name) == 0) missing.push_back(name);
  return missing;
}

}  // namespace rlx::command
