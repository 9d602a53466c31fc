#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cases/cases.h"
#include "rlx/graph.h"
#include "rlx/session.h"

namespace rlx::bench {

/// A graph with one output, "out" of f32, the values of its inputs and parameters, and what a Case tells of it.
struct Program {
  Graph graph;
  std::map<std::string, Array> inputs, params;
  std::vector<std::int64_t> shape;  // of the output
  std::string name;
  nlohmann::json about;
  double flops = 0, bytes_read = 0, bytes_written = 0;
};

/// Attention over (1, heads, length, depth) in f32 or bf16. Multiply-adds of the two products count, for the pairs of query and key that
/// are seen; exponentials do not.
Program attention_program(std::int64_t heads, std::int64_t depth, std::int64_t length, bool causal, DType dtype = f32,
                          bool gradient = false);

/// One query a head against keys and values (1, kv_heads, keys, depth), as a token meets them that continues a text. Beside f16 ones
/// queries are f32.
Program decode_program(std::int64_t heads, std::int64_t kv_heads, std::int64_t depth, std::int64_t keys, DType dtype = f32);

/// A prompt of f32 queries that continues a text whose keys and values are f16, rounded as the op says.
Program prompt_program(std::int64_t heads, std::int64_t kv_heads, std::int64_t depth, std::int64_t queries, std::int64_t keys);

/// x (m, k) times a parameter (k, n).
Program product_program(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = f32);

/// x (m, k) times the transpose of a parameter (n, k) in blocks of a GGUF type.
Program block_product_program(const std::string& type, std::int64_t m, std::int64_t n, std::int64_t k);
/// The same of `experts` such parameters, which the rows take in turn.
Program grouped_product_program(const std::string& type, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t experts);

/// A square convolution, padded so that a stride of 1 keeps the size.
struct ConvLayer {
  std::int64_t channels, out_channels, size, kernel, stride;
};
/// One layer of each kind that ResNet-50 has, for images of 224.
std::vector<ConvLayer> resnet50_layers();
/// x (batch, channels, size, size) with a parameter. All products count, those with padding too.
Program conv_program(const ConvLayer& layer, std::int64_t batch);
/// A block of ResNet-50 without its norms: x (1, 4 width, size, size) through convolutions of 1 x 1, 3 x 3 and 1 x 1, and added to what
/// they give.
Program bottleneck_program(std::int64_t width, std::int64_t size);

/// An f32 array with the numbers of `fill`.
Array filled(std::vector<std::int64_t> shape, std::uint32_t seed);

/// Values for all parameters of a graph, which are f32: small numbers, and one array for all of one shape, so that deep models fit.
std::map<std::string, Array> shared_params(const Graph& graph);

/// A case that runs the program as the session compiles it, into memory that stays the same from run to run. Its arithmetic is that of the
/// launch with the most flops.
Case program_case(const Session& session, const Program& program);

}  // namespace rlx::bench
