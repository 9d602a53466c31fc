// Functions of the program that graphs call.
#include "ops/control/host_call.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>

#include "ir/array_type.h"
#include "ir/op.h"

namespace rlx {
namespace {

/// All that were ever called, by their numbers from 1: graphs may outlive who made them. 0 gives its operands as they are.
class HostFunctions {
 public:
  std::int64_t add(HostEntry entry) {
    const std::scoped_lock lock(mutex_);
    entries_.push_back(std::move(entry));
    return static_cast<std::int64_t>(entries_.size());
  }
  const HostEntry& at(std::int64_t number) const {
    const std::scoped_lock lock(mutex_);
    if (number < 1 || number > static_cast<std::int64_t>(entries_.size()))
      fail("rlx.host_call: function {} (allowed: 0 to {}, those of this process)", number, entries_.size());
    return entries_[static_cast<std::size_t>(number - 1)];
  }

 private:
  mutable std::mutex mutex_;
  std::deque<HostEntry> entries_;  // which stay where they are
};

HostFunctions& functions() {
  static auto* one = new HostFunctions;  // not freed: functions of an interpreter that is gone by then
  return *one;
}

std::vector<Array> results_of(std::int64_t function, std::span<const Array> operands) {
  if (function != 0) return functions().at(function).function(operands);
  return {operands.begin(), operands.end()};
}

/// Element i of the first axis: a view.
Array element(const Array& array, std::int64_t i) {
  const std::vector<std::int64_t> shape(array.shape().begin() + 1, array.shape().end());
  const std::size_t bytes = array.bytes().size() / static_cast<std::size_t>(array.shape()[0]);
  return {array.dtype(), shape, array.bytes().subspan(static_cast<std::size_t>(i) * bytes, bytes), array.owner()};
}

/// `function` for each example of a batch, which lies on the first axis of those operands that have it.
HostFunction each_of(std::int64_t function, std::vector<bool> batched) {
  return [=](std::span<const Array> operands) {
    const auto first = std::find(batched.begin(), batched.end(), true);
    const std::int64_t count = operands[static_cast<std::size_t>(first - batched.begin())].shape()[0];
    std::vector<Array> results;
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<Array> example(operands.begin(), operands.end());
      for (std::size_t k = 0; k < example.size(); ++k)
        if (batched[k]) example[k] = element(example[k], i);
      const std::vector<Array> one = results_of(function, example);
      for (std::size_t r = 0; r < one.size(); ++r) {
        if (i == 0) {
          std::vector<std::int64_t> shape{count};
          shape.insert(shape.end(), one[r].shape().begin(), one[r].shape().end());
          results.emplace_back(one[r].dtype(), shape);
        }
        const std::span<const std::byte> bytes = one[r].bytes();
        if (!bytes.empty())
          std::memcpy(results[r].mutable_bytes().data() + static_cast<std::size_t>(i) * bytes.size(), bytes.data(), bytes.size());
      }
    }
    return results;
  };
}

struct HostCall {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "host_call";
  static constexpr std::string_view formula =
      "what the function of that number, one of this process, makes of its operands; 0: the operands";
  static constexpr std::string_view not_differentiable = "it is a function of the host: custom_jvp and custom_vjp give it a derivative";
  std::int64_t function = 0;
  static auto fields() { return Fields<&HostCall::function>{}; }
  static std::vector<Type> infer(const HostCall& op, std::span<const Type> operands) {
    if (op.function != 0) return functions().at(op.function).results;
    return {operands.begin(), operands.end()};
  }
  static void evaluate(const HostCall& op, std::span<const Array> in, std::span<Array> out) {
    std::vector<Array> results = results_of(op.function, in);
    if (results.size() != out.size()) fail("rlx.host_call: the function gave {} results (allowed: {})", results.size(), out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (results[i].dtype() != out[i].dtype() || results[i].shape() != out[i].shape())
        fail("rlx.host_call: result {} is {} (allowed: {})", i, type_of(results[i]).to_string(), type_of(out[i]).to_string());
      out[i] = std::move(results[i]);
    }
  }
  static Values batch(const HostCall& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size);
  static std::vector<Sample> samples() { return {{{{{f32, {2, 3}}}, {{i32, {4}}}}, {}}, {{{{f64, {3}}}}, {}}}; }
};
const Op<HostCall> host_call_op;

Values HostCall::batch(const HostCall& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
  std::vector<Type> types;
  for (std::size_t i = 0; i < x.size(); ++i) {
    types.push_back(x[i].type());
    if (batched[i]) types.back().shape.erase(types.back().shape.begin());
  }
  types = infer(op, types);
  for (Type& type : types) {
    if (info(type.dtype).bits < 8) fail("rlx.host_call: a batch of {} (allowed: types of whole bytes)", type.to_string());
    type.shape.insert(type.shape.begin(), size);
  }
  return host_call_op.all({keep_host_function({each_of(op.function, batched), types})}, x);
}

}  // namespace

std::int64_t keep_host_function(HostEntry entry) { return functions().add(std::move(entry)); }

void check_calls_no_host(const Graph& graph, std::string_view what) {
  for (std::size_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(static_cast<std::int32_t>(id));
    if (node.op->name == HostCall::name && std::get<std::int64_t>(node.attrs[0]) != 0)
      fail("{}: the graph calls a function of this process (allowed in a file: graphs without host_call)", what);
    for (const Attr& attr : node.attrs)
      if (const auto* region = std::get_if<Region>(&attr); region && *region) check_calls_no_host(**region, what);
  }
}

}  // namespace rlx
