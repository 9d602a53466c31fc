#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rlx/graph.h"

// Derivatives and batching. The transforms add nodes to the graph of their operands, so they compose in any order: the gradient of a
// gradient, the batch of a gradient, the derivative of a loop over batches. Values of integers and bool have no derivative.
// `stop_gradient`, `cond`, `while_loop`, `scan` and `fori_loop` are builders of rlx/ops.h.
// Threads: as for builders (rlx/graph.h): one thread at a time for a graph, and functions are called on the thread of the transform.

namespace rlx {

/// A part of a program as a C++ function: called with values, it adds nodes and gives the results.
using Function = std::function<Values(const Values&)>;

// Derivatives between values of one graph.

/// Forward mode: the change of each output when the inputs change in the directions `tangents` (null: not at all; else of the input's
/// type). Inputs may be any values that the outputs are computed from, not only graph inputs; each is taken as independent.
Values jvp(const Operands& outputs, const Values& inputs, const Values& tangents);

/// Reverse mode: for each input the sum over outputs of cotangent (null: zero; else of the output's type) times derivative.
/// Complex cotangents are not conjugated. Throws Error for an integer or bool input, and `rlx.<op>: not differentiable: <reason>`
/// when an input reaches an output through an op without derivative. Where the way leads through integers (argmax, a cast, a bitcast to
/// integers) there is nothing to differentiate: that part is 0, as in JAX.
Values vjp(const Operands& outputs, const Values& inputs, const Values& cotangents);

/// The gradient of a float scalar by each input, in the inputs' types.
Values grad(Operand output, const Values& inputs);

/// The same, with the output computed along with it: shares the forward pass where composites are differentiated by their bodies.
std::pair<Value, Values> value_and_grad(Operand output, const Values& inputs);

/// Hessian times vector: the change of the gradient of a scalar function at x in the direction `v`.
Value hvp(const Function& function, Operand x, Operand v);

enum class JacobianMode : std::uint8_t { forward, reverse };
/// The derivative of every element of each result of `function` by every element of `x`: shape of the result, then shape of x.
/// Reverse mode runs one backward pass for each element of the result, forward mode one pass for each element of x, all as a batch.
Values jacobian(const Function& function, Operand x, JacobianMode mode = JacobianMode::reverse);

// Batching.

/// Runs `function`, written for single examples, on a whole batch. Operand i carries the batch on axis in_axes[i], or has none
/// (nullopt); result i gets it on out_axes[i] (empty: axis 0 everywhere). Negative axes count from the end.
Values vmap(const Function& function, const Operands& operands, std::vector<std::optional<std::int64_t>> in_axes,
            std::vector<std::int64_t> out_axes = {});

// Rules of one's own.

/// What the backward pass may keep from the forward pass; the rest is computed again.
enum class Save : std::uint8_t { everything, dots, nothing, unbatched_dots };
constexpr auto enum_words(Save) { return std::array<std::string_view, 4>{"everything", "dots", "nothing", "unbatched_dots"}; }

/// `function` with less memory between its forward and its backward pass. `dots` keeps the results of dot and conv, `unbatched_dots` those
/// of a dot without batch axes, `nothing` only the operands. What `checkpoint_name` gave one of `names` is kept beside these, unless it is
/// in a loop or a branch.
Function checkpoint(Function function, Save save, const std::vector<std::string>& names = {});
/// x, under a name for `checkpoint`. Throws Error for a name with a comma, and for an empty one.
Value checkpoint_name(Operand x, const std::string& name);

/// Gives the tangents of the results from operands and their tangents (zeros where an operand does not change, null for integers).
using JvpRule = std::function<Values(const Values& x, const Values& dx)>;
/// `function` with a derivative of one's own; reverse mode is the rule's transpose. Neither may be differentiated by a value that it
/// captures instead of taking as operand.
Function custom_jvp(Function function, JvpRule rule);

/// Gives the results of the function, and what its backward pass wants to keep.
using VjpForward = std::function<std::pair<Values, Values>(const Values& x)>;
/// Gives the cotangents of the operands (null: zero, or an integer operand) from the residuals and the results' cotangents (null for
/// integers).
using VjpBackward = std::function<Values(const Values& residuals, const Values& dy)>;
/// `function` with a reverse mode of one's own. Forward mode differentiates `function` itself.
Function custom_vjp(Function function, VjpForward forward, VjpBackward backward);

/// Gives the batched results from batched operands: the batch is axis 0 of all of them.
using VmapRule = std::function<Values(const Values& x)>;
/// `function` with a batching of one's own. The rule is called once, with a symbolic batch size.
Function custom_vmap(Function function, VmapRule rule);

// Whole graphs.

/// A graph with the inputs of `graph` and one output `grad_<input>` for each name in `wrt`: the gradient of its only output, a float
/// scalar; that output stays, in front, when `with_value` is set. Throws Error for a name that is no input.
Graph grad_graph(const Graph& graph, const std::vector<std::string>& wrt, bool with_value = false);
/// All outputs, then `tangent_<output>` for each that varies; `tangent_<input>` become further inputs.
Graph jvp_graph(const Graph& graph, const std::vector<std::string>& wrt);
/// `hvp_<input>`: the change of the gradients of the only output along the further inputs `vector_<input>`.
Graph hvp_graph(const Graph& graph, const std::vector<std::string>& wrt);
/// `jacobian_<output>_<input>` for each output that varies and each name in `wrt`.
Graph jacobian_graph(const Graph& graph, const std::vector<std::string>& wrt, JacobianMode mode = JacobianMode::reverse);
/// The graph on a batch of `size` examples: an input has the batch on the axis that `in_axes` gives (absent or nullopt: none), every
/// output on `out_axis`.
Graph vmap_graph(const Graph& graph, const std::map<std::string, std::optional<std::int64_t>>& in_axes, std::int64_t out_axis,
                 const Dim& size);

}  // namespace rlx
