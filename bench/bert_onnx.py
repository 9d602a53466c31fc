"""Builds the ONNX file of a BERT encoder with mean pooling and L2 normalisation from a folder as sentence-transformers saves it.

The graph is what the exporters write (MatMul, Add, Erf GELU, LayerNormalization), so that ONNX Runtime's transformer fusions apply.
"""
import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file


class Builder:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], 0

    def constant(self, value):
        self.count += 1
        name = f"c{self.count}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        name = f"v{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def number(self, value):
        return self.constant(np.array(value, np.float32))


def build(folder, out):
    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())
    weights = {k.removeprefix("bert."): v for k, v in load_file(folder / "model.safetensors").items()}
    heads, width = config["num_attention_heads"], config["hidden_size"]
    depth, b = width // heads, Builder()

    def linear(x, name):
        return b.op("Add", b.op("MatMul", x, b.constant(weights[name + ".weight"].T)), b.constant(weights[name + ".bias"]))

    def norm(x, name):
        return b.op("LayerNormalization", x, b.constant(weights[name + ".weight"]), b.constant(weights[name + ".bias"]), axis=-1, epsilon=config["layer_norm_eps"])

    def split_heads(x, perm):
        return b.op("Transpose", b.op("Reshape", x, b.ints(0, 0, heads, depth)), perm=perm)

    words = b.op("Gather", b.constant(weights["embeddings.word_embeddings.weight"]), "input_ids")
    types = b.op("Gather", b.constant(weights["embeddings.token_type_embeddings.weight"]), "token_type_ids")
    length = b.op("Slice", b.op("Shape", "input_ids"), b.ints(1), b.ints(2))
    positions = b.op("Slice", b.constant(weights["embeddings.position_embeddings.weight"]), b.ints(0), length, b.ints(0))
    x = norm(b.op("Add", b.op("Add", words, types), positions), "embeddings.LayerNorm")
    mask = b.op("Cast", "attention_mask", to=TensorProto.FLOAT)
    keep = b.op("Unsqueeze", mask, b.ints(1, 2))
    bias = b.op("Mul", b.op("Sub", b.number(1), keep), b.number(-1e4))  # as BERT was published; far larger ones overflow in bf16 inside of peers
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        q = split_heads(linear(x, layer + "attention.self.query"), [0, 2, 1, 3])
        k = split_heads(linear(x, layer + "attention.self.key"), [0, 2, 3, 1])
        v = split_heads(linear(x, layer + "attention.self.value"), [0, 2, 1, 3])
        scores = b.op("Add", b.op("Div", b.op("MatMul", q, k), b.number(depth**0.5)), bias)
        mixed = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        mixed = b.op("Reshape", mixed, b.ints(0, 0, width))
        x = norm(b.op("Add", linear(mixed, layer + "attention.output.dense"), x), layer + "attention.output.LayerNorm")
        h = linear(x, layer + "intermediate.dense")
        h = b.op("Mul", b.op("Mul", h, b.op("Add", b.op("Erf", b.op("Div", h, b.number(2**0.5))), b.number(1))), b.number(0.5))
        x = norm(b.op("Add", linear(h, layer + "output.dense"), x), layer + "output.LayerNorm")
    weight = b.op("Unsqueeze", mask, b.ints(2))
    total = b.op("ReduceSum", b.op("Mul", x, weight), b.ints(1), keepdims=0)
    pooled = b.op("Div", total, b.op("Clip", b.op("ReduceSum", weight, b.ints(1), keepdims=0), b.number(1e-9)))
    norm2 = b.op("ReduceL2", pooled, b.ints(1), keepdims=1)
    b.nodes.append(helper.make_node("Div", [pooled, b.op("Clip", norm2, b.number(1e-12))], ["embedding"]))

    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["B", "S"]) for n in ("input_ids", "attention_mask", "token_type_ids")]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["B", width])]
    graph = helper.make_graph(b.nodes, "bert", inputs, outputs, b.initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), out)
