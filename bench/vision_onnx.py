"""Builds the ONNX files of the networks of vision.cpp from the parameters that it saves.

The graphs are what the exporters write (Conv, BatchNormalization, Relu; MatMul, Softmax, Erf GELU, LayerNormalization), so that the fusions
of the peers apply.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper
from safetensors.numpy import load_file

from bert_onnx import Builder


def resnet50(b, weights):
    def convolved(x, name, norm, stride):
        w = weights[name + ".weight"]
        y = b.op("Conv", x, b.constant(w), strides=[stride] * 2, pads=[w.shape[2] // 2] * 4, kernel_shape=list(w.shape[2:]))
        of_norm = [b.constant(weights[f"{norm}.{part}"]) for part in ("weight", "bias", "running_mean", "running_var")]
        return b.op("BatchNormalization", y, *of_norm, epsilon=1e-5)

    x = b.op("Relu", convolved("image", "conv1", "bn1", 2))
    x = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            name, stride = f"layer{stage + 1}.{block}.", 2 if stage > 0 and block == 0 else 1
            y = b.op("Relu", convolved(x, name + "conv1", name + "bn1", 1))
            y = b.op("Relu", convolved(y, name + "conv2", name + "bn2", stride))
            y = convolved(y, name + "conv3", name + "bn3", 1)
            if block == 0:
                x = convolved(x, name + "downsample.0", name + "downsample.1", stride)
            x = b.op("Relu", b.op("Add", y, x))
    x = b.op("Flatten", b.op("GlobalAveragePool", x))
    return b.op("Gemm", x, b.constant(weights["fc.weight"]), b.constant(weights["fc.bias"]), transB=1)


def vit_b16(b, weights):
    width, heads, patch = 768, 12, 16
    depth = width // heads

    def linear(x, name):
        return b.op("Add", b.op("MatMul", x, b.constant(weights[name + ".weight"].T)), b.constant(weights[name + ".bias"]))

    def norm(x, name):
        return b.op("LayerNormalization", x, b.constant(weights[name + ".weight"]), b.constant(weights[name + ".bias"]), axis=-1, epsilon=1e-6)

    def index(i):
        return b.constant(np.array(i, np.int64))

    x = b.op("Conv", "image", b.constant(weights["patch_embed.proj.weight"]), b.constant(weights["patch_embed.proj.bias"]),
             strides=[patch] * 2, kernel_shape=[patch] * 2)
    x = b.op("Transpose", b.op("Reshape", x, b.ints(0, width, -1)), perm=[0, 2, 1])
    batch = b.op("Slice", b.op("Shape", "image"), b.ints(0), b.ints(1))
    token = b.op("Expand", b.constant(weights["cls_token"]), b.op("Concat", batch, b.ints(1, width), axis=0))
    x = b.op("Add", b.op("Concat", token, x, axis=1), b.constant(weights["pos_embed"]))
    for i in range(12):
        block = f"blocks.{i}."
        qkv = b.op("Reshape", linear(norm(x, block + "norm1"), block + "attn.qkv"), b.ints(0, 0, 3, heads, depth))
        qkv = b.op("Transpose", qkv, perm=[2, 0, 3, 1, 4])
        q, k, v = (b.op("Gather", qkv, index(part), axis=0) for part in range(3))
        scores = b.op("MatMul", b.op("Mul", q, b.number(depth**-0.5)), b.op("Transpose", k, perm=[0, 1, 3, 2]))
        mixed = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        x = b.op("Add", x, linear(b.op("Reshape", mixed, b.ints(0, 0, width)), block + "attn.proj"))
        h = linear(norm(x, block + "norm2"), block + "mlp.fc1")
        h = b.op("Mul", b.op("Mul", h, b.op("Add", b.op("Erf", b.op("Div", h, b.number(2**0.5))), b.number(1))), b.number(0.5))
        x = b.op("Add", x, linear(h, block + "mlp.fc2"))
    x = b.op("Gather", norm(x, "norm"), index(0), axis=1)
    return linear(x, "head")


NETWORKS = {"resnet50": resnet50, "vit_b16": vit_b16}


def build(network, parameters, out):
    """Writes the file `out` of a network with the parameters of a safetensors file: image (N, 3, 224, 224) to logits (N, 1000)."""
    b = Builder()
    logits = NETWORKS[network](b, load_file(parameters))
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 224, 224])]
    outputs = [helper.make_tensor_value_info(logits, TensorProto.FLOAT, ["N", 1000])]
    graph = helper.make_graph(b.nodes, network, inputs, outputs, b.initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), out)
