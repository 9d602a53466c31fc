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
import made
import sentences
from side import Unavailable


def read_model(folder):
    folder = pathlib.Path(folder)
    weights = {name.removeprefix("bert."): value for name, value in load_file(folder / "model.safetensors").items()}
    return json.loads((folder / "config.json").read_text()), weights


def onnx_file(args):
    """The peers' model file: args.onnx, or made once in the model's folder."""
    return args.onnx or made.kept(pathlib.Path(args.model) / f"bench-{made.key('bert_onnx.py')}.onnx", lambda path: bert_onnx.build(args.model, path))


# Each engine's function imports it and has its model file made, none of which is timed. It gives the version and `opened`, which goes from
# that file to a function that runs one batch.


def onnx_runtime(args, batches):
    import onnxruntime

    if args.precision == "bf16":
        raise Unavailable("its CPU provider has no bf16 kernels")
    path = onnx_file(args)
    if args.precision == "int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize = lambda out: quantize_dynamic(path, out, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul"])
        path = made.kept(path.with_suffix(f".int8.{onnxruntime.__version__}.onnx"), quantize)

    def opened():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return lambda inputs: session.run(None, inputs)[0]

    return onnxruntime.__version__, opened


def openvino(args, batches):
    import openvino

    core = openvino.Core()
    if args.precision == "int8":
        raise Unavailable("dynamic int8 needs a model that its own tools (NNCF) have quantized")
    if args.precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise Unavailable("it has no bf16 on this CPU")
    path = onnx_file(args)

    def opened():
        model = core.read_model(path)
        if len(batches) == 1:  # the sizes are known, so it may use them
            model.reshape({name: value.shape for name, value in batches[0].items()})
        compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": args.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                                                     "INFERENCE_PRECISION_HINT": args.precision})
        request = compiled.create_infer_request()
        return lambda inputs: request.infer(inputs)[0].copy()

    return openvino.__version__.split("-")[0], opened


def torch_model(args):
    import torch

    import bert_torch

    model = bert_torch.SentenceModel(*read_model(args.model)).eval()
    if args.precision == "bf16":
        model = model.to(torch.bfloat16)
    if args.precision == "int8":
        per_channel = torch.ao.quantization.per_channel_dynamic_qconfig
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear: per_channel}, dtype=torch.qint8)
    return model


def torch_engine(args, finished):
    import torch
    import bert_torch  # so that it is not timed either

    torch.set_num_threads(args.threads)
    if args.precision == "int8" and not hasattr(torch.ao.quantization, "quantize_dynamic"):
        raise Unavailable("this version has no torch.ao.quantization.quantize_dynamic")

    def opened():
        model = finished(torch_model(args))

        def run(inputs):
            tensors = {name: torch.from_numpy(value) for name, value in inputs.items()}
            with torch.inference_mode():
                return model(**tensors, padded=bool((inputs["attention_mask"] == 0).any())).numpy()

        return run

    return torch.__version__, opened


def torch_eager(args, batches):
    return torch_engine(args, lambda model: model)


def torch_compiled(args, batches):
    import torch
    import torch._inductor.config as inductor

    if args.precision == "int8":
        raise Unavailable("measured without torch.compile only")
    inductor.compile_threads = 1  # in this process, which the comparison stops while others run
    inductor.freezing = True  # weights are constants, packed once
    return torch_engine(args, lambda model: torch.compile(model, dynamic=len(batches) > 1))


def jax(args, batches):
    if args.precision == "int8":
        raise Unavailable("it has no dynamic int8 quantization")
    import jax as library

    import bert_jax

    dtype = {"f32": library.numpy.float32, "bf16": library.numpy.bfloat16}[args.precision]

    def opened():
        model = bert_jax.sentence_model(*read_model(args.model), dtype)
        return lambda inputs: np.asarray(model(inputs))

    return library.__version__, opened


ENGINES = {"onnxruntime": onnx_runtime, "openvino": openvino, "torch": torch_eager, "torch.compile": torch_compiled, "jax": jax}


def answers():
    """Where answers go. What libraries print does not get between them."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")  # of what peers mean to change in later versions
    return out


def open_engine(name, args, batches, out):
    """Opens an engine and says so: its version, and the seconds from its model file to the results of the first run. Returns the function that
    runs one batch; nothing when the engine cannot take part, which it says too, and the comparison goes on with the others."""
    try:
        version, opened = ENGINES[name](args, batches)
        begin = time.perf_counter()
        run = opened()
        for batch in batches:
            run(batch)
        about = {"version": version, "first_result_s": time.perf_counter() - begin}
    except Unavailable as reason:
        run, about = None, {"unavailable": str(reason)}
    except Exception as error:
        run, about = None, {"unavailable": f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]}
    print(json.dumps(about), file=out, flush=True)
    return run


def serve(run_all, result, out):
    """Answers "run COUNT" with the seconds of each run and "result FILE" by saving the result as an .npy file, until the input ends."""
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
            np.save(argument.strip(), result())
            print("saved", file=out, flush=True)


def embeddings(run, batches):
    """In the order of the texts, which batches by length are not."""
    results = [(rows, run(batch)) for rows, batch in batches]
    matrix = np.empty((sum(len(rows) for rows, _ in results), results[0][1].shape[1]), np.float32)
    for rows, values in results:
        matrix[rows] = values
    return matrix


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--model", required=True)
    parser.add_argument("--precision", choices=("f32", "bf16", "int8"), default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ids", required=True)
    parser.add_argument("--batch", type=int, default=0)
    parser.set_defaults(onnx=None)
    return parser.parse_args()


def main():
    args, out = parse_arguments(), answers()
    batches = sentences.batches(json.loads(pathlib.Path(args.ids).read_text()), args.batch)
    run = open_engine(args.engine, args, [batch for _, batch in batches], out)
    if run:
        serve(lambda: [run(batch) for _, batch in batches], lambda: embeddings(run, batches), out)


if __name__ == "__main__":
    main()
