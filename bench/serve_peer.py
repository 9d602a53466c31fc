"""One peer with a BERT sentence model: says when it is ready, then answers "run COUNT" with seconds and "result FILE" by saving the embeddings.

usage: serve_peer.py ENGINE --model FOLDER --precision f32|bf16|int8 --threads N --ids FILE.json --batch N
"""
import argparse
import json
import os
import pathlib
import sys
import time
import warnings

import numpy as np
from safetensors.numpy import load_file

import bert_onnx
import sentences
from side import Unavailable


def read_model(folder):
    folder = pathlib.Path(folder)
    weights = {name.removeprefix("bert."): value for name, value in load_file(folder / "model.safetensors").items()}
    return json.loads((folder / "config.json").read_text()), weights


def onnx_file(folder):
    """Made once, in the model's folder."""
    path = pathlib.Path(folder) / "bench.onnx"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        bert_onnx.build(folder, unfinished)
        unfinished.rename(path)
    return path


def onnx_runtime(args, batches):
    import onnxruntime

    if args.precision == "bf16":
        raise Unavailable("its CPU provider has no bf16 kernels")
    path = onnx_file(args.model)
    if args.precision == "int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantized = path.with_suffix(".int8.onnx")
        if not quantized.exists():
            quantize_dynamic(path, quantized, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul"])
        path = quantized
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return onnxruntime.__version__, lambda inputs: session.run(None, inputs)[0]


def openvino(args, batches):
    import openvino

    core = openvino.Core()
    if args.precision == "int8":
        raise Unavailable("dynamic int8 needs a model that its own tools (NNCF) have quantized")
    if args.precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise Unavailable("it has no bf16 on this CPU")
    model = core.read_model(onnx_file(args.model))
    if len(batches) == 1:  # the sizes are known, so it may use them
        model.reshape({name: value.shape for name, value in batches[0].items()})
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": args.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                                                 "INFERENCE_PRECISION_HINT": args.precision})
    request = compiled.create_infer_request()
    return openvino.__version__.split("-")[0], lambda inputs: request.infer(inputs)[0].copy()


def torch_model(args):
    import torch

    import bert_torch

    torch.set_num_threads(args.threads)
    model = bert_torch.SentenceModel(*read_model(args.model)).eval()
    if args.precision == "bf16":
        model = model.to(torch.bfloat16)
    if args.precision == "int8":
        if not hasattr(torch.ao.quantization, "quantize_dynamic"):
            raise Unavailable("this version has no torch.ao.quantization.quantize_dynamic")
        per_channel = torch.ao.quantization.per_channel_dynamic_qconfig
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear: per_channel}, dtype=torch.qint8)
    return model


def torch_runner(args, model):
    import torch

    def run(inputs):
        tensors = {name: torch.from_numpy(value) for name, value in inputs.items()}
        with torch.inference_mode():
            return model(**tensors, padded=bool((inputs["attention_mask"] == 0).any())).numpy()

    return torch.__version__, run


def torch_eager(args, batches):
    return torch_runner(args, torch_model(args))


def torch_compiled(args, batches):
    import torch
    import torch._inductor.config as inductor

    if args.precision == "int8":
        raise Unavailable("measured without torch.compile only")
    inductor.compile_threads = 1  # in this process, which the comparison stops while others run
    inductor.freezing = True  # weights are constants, packed once
    return torch_runner(args, torch.compile(torch_model(args), dynamic=len(batches) > 1))


def jax(args, batches):
    if args.precision == "int8":
        raise Unavailable("it has no dynamic int8 quantization")
    import jax as library

    import bert_jax

    dtype = {"f32": library.numpy.float32, "bf16": library.numpy.bfloat16}[args.precision]
    model = bert_jax.sentence_model(*read_model(args.model), dtype)
    return library.__version__, lambda inputs: np.asarray(model(inputs))


ENGINES = {"onnxruntime": onnx_runtime, "openvino": openvino, "torch": torch_eager, "torch.compile": torch_compiled, "jax": jax}


def serve(run_all, embeddings, out):
    for line in sys.stdin:
        command, argument = line.split(maxsplit=1)
        if command == "run":
            run_all()  # not timed: the caches hold what others left there
            times = []
            for _ in range(int(argument)):
                begin = time.perf_counter()
                run_all()
                times.append(time.perf_counter() - begin)
            print(*times, file=out, flush=True)
        else:
            np.save(argument.strip(), embeddings())
            print("saved", file=out, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--model", required=True)
    parser.add_argument("--precision", choices=("f32", "bf16", "int8"), default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ids", required=True)
    parser.add_argument("--batch", type=int, default=0)
    args = parser.parse_args()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print does not get between the answers
    warnings.simplefilter("ignore")  # of what peers mean to change in later versions
    batches = sentences.batches(json.loads(pathlib.Path(args.ids).read_text()), args.batch)
    inputs = [batch for _, batch in batches]
    try:
        begin = time.perf_counter()
        version, run = ENGINES[args.engine](args, inputs)
        run_all = lambda: [run(batch) for batch in inputs]
        run_all()
        ready = {"version": version, "open_s": time.perf_counter() - begin}
    except Exception as error:  # whatever keeps a peer from taking part is reported, and the others go on
        print(json.dumps({"unavailable": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
                          if not isinstance(error, Unavailable) else str(error)}), file=out, flush=True)
        return
    print(json.dumps(ready), file=out, flush=True)

    def embeddings():
        result = np.empty((sum(len(rows) for rows, _ in batches), len(run(inputs[0])[0])), np.float32)
        for rows, batch in batches:
            result[rows] = run(batch)
        return result

    run_all()
    serve(run_all, embeddings, out)


if __name__ == "__main__":
    main()
