#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "models/config/hidden_activation.h"
#include "rlx/op_types.h"

namespace rlx {

/// A norm over features: root mean square, or (centred) layer norm.
struct NormKind {
  bool centred = false;
  bool plus_one = false;  // multiplies by 1 + weight
  bool weight = true, bias = false;
  double eps = 1e-6;
};

/// What carries information from token to token in a layer.
enum class Mixer : std::uint8_t { attention, latent_attention, delta_net, state_space, state_space_heads, short_convolution };

/// True for mixers that look at tokens one by one; the others keep a state that stands for all of them.
constexpr bool is_attention(Mixer mixer) { return mixer == Mixer::attention || mixer == Mixer::latent_attention; }

/// What layers of one model may differ in.
struct DecoderLayer {
  Mixer mixer = Mixer::attention;
  std::int64_t window = 0;   // of attention; 0: all that came before. Of encoders: tokens to either side; 0: all
  bool norm = true;          // of what attention reads, where others have one
  int rope = 0;              // index in DecoderConfig::ropes; -1: none
  double score_divisor = 1;  // attention's scores are divided by it
  bool feed_forward = true;
  bool experts = false;  // its feed-forward block is a mixture
};

/// Of each head, with weights that all of them share or with weights of its own; or of all heads as one.
enum class QueryKeyNorm : std::uint8_t { none, head, own_head, whole };

/// A mixture of experts in place of a feed-forward block.
struct ExpertsConfig {
  std::int64_t count = 0, chosen = 0;  // experts, and how many of them a token takes
  std::int64_t width = 0;              // of one expert
  bool sigmoid = false;                // scores are sigmoids; else their softmax
  bool router_bias = false;            // added to the scores where experts are chosen, not where they are weighed
  std::int64_t groups = 1;             // experts come in so many groups,
  std::int64_t chosen_groups = 1;      // so many of which take part:
  std::int64_t group_judges = 1;       // those whose so many best experts have the largest sum
  bool normalize = false;              // the chosen weights sum to 1
  double scale = 1;                    // of the weights, in the end
  std::int64_t shared_width = 0;       // of an expert that all tokens take; 0: none
  bool shared_gate = false;            // its result is multiplied by sigmoid(a feature of the token)
};

/// Attention whose keys and values are products with a few features of each token, which all heads share and which alone the cache holds
/// (DeepSeek-AI 2024).
struct LatentAttentionConfig {
  std::int64_t query_rank = 0;                                 // features that queries are made of; 0: they are made of the input
  std::int64_t rank = 0;                                       // features that keys and values are made of
  std::int64_t plain_size = 0, rope_size = 0, value_size = 0;  // of a head: elements of queries and keys that stay and that turn; of values
  bool keys_by_feature = false;  // the parameter that makes keys is (heads, rank, plain_size); else (heads * plain_size, rank)
};

/// Gated delta nets (Yang et al. 2024): linear attention, whose state has a matrix for each value head.
struct DeltaNetConfig {
  std::int64_t key_heads = 0, value_heads = 0, key_size = 0, value_size = 0;
  std::int64_t kernel = 4;     // tokens that the convolution before them sees
  bool log_decay = true;       // the parameter is the logarithm of the negated rate of decay; else `decay_rate` itself
  bool heads_in_turn = false;  // value heads lie in turn, one of each key head after the other; else those of a key head together
};

/// Selective state spaces (Gu & Dao 2023), or those of heads, each of which forgets as a whole (Dao & Gu 2024).
struct StateSpaceConfig {
  std::int64_t width = 0, states = 0;
  std::int64_t kernel = 4;
  bool bias = false, convolution_bias = true;
  std::int64_t step_rank = 0;         // not of heads
  std::optional<NormKind> norm = {};  // not of heads: of what a token says about step, input and output
  bool log_decay = true;              // the parameter is the logarithm of the negated decay; else `decay` itself
  std::int64_t heads = 0;             // width / heads features each
  std::int64_t groups = 1;            // of heads that share what goes in and out; the result is normalised by group
  double least_step = 0, largest_step = std::numeric_limits<double>::infinity();  // of heads
};

/// Gated convolutions over a few tokens (LFM2).
struct ShortConvolutionConfig {
  std::int64_t kernel = 3;
  bool bias = false;
};

/// What labels texts, of an encoder: the first token's state or the mean of all, or the states of each token, a dense layer, one number for
/// each label.
struct TextHead {
  std::int64_t labels = 0;  // 0: there is no classifier
  bool mean = false, each_token = false;
  bool dense = true, dense_bias = true, norm = false;
  HiddenActivation activation = HiddenActivation::tanh;
};

/// A language model that predicts the next token from those before it, described by few axes. Sizes are those of Hugging Face's configs.
/// Parameters have the names below; families say which tensors of a checkpoint hold them:
///
///     token_embedding, type_embedding, position_embedding, embedding_norm, output_norm, head.{dense,norm}, output,
///     classifier.{dense,norm,output}
///     layers.N.attention_norm, .attention_post_norm, .attention.{q,k,v,output,q_norm,k_norm,gate}
///     layers.N.attention.{q_input,q_input_norm,q,latent,latent_norm,rope_key,k,v,output} of latent attention
///     layers.N.delta_net.{q,k,v,gate,beta,decay,convolution,log_decay or decay_rate,decay_bias,norm,output}
///     layers.N.state_space.{input,gate,convolution,step_input,step,b,c,{step,b,c}_norm,log_decay or decay,skip,output}
///     layers.N.state_space.{input,gate,convolution,step,step_bias,log_decay or decay,skip,norm,output} of heads; input: features, b, c
///     layers.N.short_convolution.{before,input,after,kernel,output}
///     layers.N.ffn_norm, .ffn_post_norm, .ffn.{gate,up,down}, .experts.{router,router_bias,gate,up,down,shared.*,shared_gate}
struct DecoderConfig {
  std::int64_t vocab_size = 0, hidden_size = 0, max_positions = 0;
  std::int64_t heads = 0, kv_heads = 0, head_size = 0;
  std::int64_t ffn_size = 0;
  std::vector<DecoderLayer> layers;
  std::vector<RopeOptions> ropes;  // longrope: the first length with long factors is original_length + 1

  bool causal = true;  // else an encoder: every token sees all, and there is no cache

  NormKind norm;
  bool norm_before = true, norm_after = false;  // of attention and feed-forward block: their input, their result
  bool norm_sum = false;                        // the norm behind a block takes in what the block is added to
  bool parallel = false;                        // both read the layer's input; else the second reads what the first left
  bool shared_norm = false;                     // parallel blocks read one norm
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  bool attention_gate = false;  // what attention gives is multiplied by sigmoid(a projection of its input)

  bool qkv_bias = false, attention_output_bias = false, ffn_bias = false, output_bias = false;
  bool gated = true;  // down(act(gate) * up); else down(act(up))
  HiddenActivation activation = HiddenActivation::silu;
  ExpertsConfig experts;
  LatentAttentionConfig latent;
  DeltaNetConfig delta_net;
  StateSpaceConfig state_space;
  ShortConvolutionConfig short_convolution;

  bool tied_output = false;         // the head's weights are the embeddings
  bool position_embedding = false;  // learned, max_positions rows
  std::int64_t first_position = 0;  // rows of them before that of a text's first token
  std::int64_t token_types = 0;     // kinds of token that have an embedding
  bool embedding_norm = false, output_norm = true;
  bool output_dense = false;  // before the head: dense, activation, norm
  HiddenActivation output_activation = HiddenActivation::gelu;
  bool output = true;  // there is a head; else an encoder gives its last states
  TextHead text_head;
  double embedding_scale = 1, residual_scale = 1, logits_scale = 1;
  double attention_scale = 0;  // 0: 1 / sqrt(head_size)
  bool alibi = false;          // scores take in a slope for each head times the key's position, before they are scaled (Press et al. 2022)
  double attention_softcap = 0, logits_softcap = 0;

  /// The last length that the first set of longrope factors serves; 0 where nothing changes with the length.
  std::int64_t length_of_short_factors() const;
  /// True where a layer keeps a state that holds all tokens at once: it cannot be taken back to fewer.
  bool is_recurrent() const;
  bool has_mixer(Mixer mixer) const;
  /// Makes an encoder of a decoder: every token also sees what comes after it, and windows reach half of their tokens to either side.
  void see_both_ways();
};

}  // namespace rlx
