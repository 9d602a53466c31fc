"""Times graphs on a GPU beside PyTorch on the same one, in one run.

usage: gpu_peers.py [--rlx build/release/rlx] [--device cuda] [--json FILE] [--seconds 600] [NAME]...
       gpu_peers.py --page bench/results/gpu.md bench/results/*.json: writes what files say as a page, and times nothing

Ours is what `rlx profile` prints: the fastest run of a graph whose inputs lie on the device, from the first launch until the host knows of
the end. Torch's is the median of runs between events of the device. Without torch ours is timed alone. Bytes and operations are those
that no way of computing could do without; shares are of what torch's copying and its largest bf16 product reach. The file is written anew
behind each case, and what fails is told there; cases for which no time is left are told, too.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def inputs(types):
    return "".join(f'  %{name}: {kind} = input {{label="{name}"}}\n' for name, kind in types.items())


def graph(types, line):
    return f"graph g {{\n{inputs(types)}  %y = {line}\n  output y = %y\n}}\n"


def product(kind, m, k, n, transposed):
    right = f"{kind}[{n},{k}]" if transposed else f"{kind}[{k},{n}]"
    text = graph({"a": f"{kind}[{m},{k}]", "b": right}, f"dot(%a, %b) {{lhs_contract=[1], rhs_contract=[{1 if transposed else 0}]}}")

    def peer(torch):
        of = {"f32": torch.float32, "bf16": torch.bfloat16}[kind]
        a, b = (torch.randn(shape, device="cuda", dtype=of) for shape in ((m, k), (n, k) if transposed else (k, n)))
        return lambda: a @ (b.T if transposed else b)

    size = 2 if kind == "bf16" else 4
    return {"text": text, "peer": peer, "flops": 2 * m * k * n, "bytes": size * (m * k + k * n + m * n)}


def blocks(kind, bytes_per_256, m, k, n, rounds=False):
    """Weights in blocks; torch multiplies as many numbers in bf16."""
    row = k // 256 * bytes_per_256
    text = graph({"x": f"f32[{m},{k}]", "w": f"u8[{n},{row}]"}, f'block_dot(%x, %w) {{type="{kind}", int8={str(rounds).lower()}}}')
    return {**product("bf16", m, k, n, True), "text": text, "bytes": 4 * m * (k + n) + n * row}


def mixture(m, k, n, experts):
    """Rows that each ask for one of several matrices in blocks."""
    text = graph({"x": f"f32[{m},{k}]", "w": f"u8[{experts},{n},{k // 256 * 144}]", "e": f"i32[{m}]"},
                 'grouped_block_dot(%x, %w, %e) {type="Q4_K", int8=false}')
    return {"text": text, "flops": 2 * m * k * n, "bytes": 4 * m * (k + n) + experts * n * k // 256 * 144}


def rounded_norm(m, k):
    """A norm whose results are rounded to 8 bits in front of a product of few columns."""
    text = (f'graph g {{\n{inputs({"x": f"f32[{m},{k}]", "w": f"u8[32,{k // 32 * 34}]"})}'
            '  %n = rms_norm(%x)\n  %y = block_dot(%n, %w) {type="Q8_0", int8=true}\n  output y = %y\n}\n')
    return {"text": text, "bytes": 4 * m * (k + 32) + k * 34}


def rows(line, of):
    shape = (8192, 8192)

    def peer(torch):
        x = torch.randn(shape, device="cuda")
        return lambda: of(torch, x)

    return {"text": graph({"x": "f32[8192,8192]"}, line), "peer": peer, "bytes": 2 * 4 * shape[0] * shape[1]}


def attention(length, heads, key_heads, queries, causal):
    types = {"q": f"bf16[1,{heads},{queries},128]", "k": f"bf16[1,{key_heads},{length},128]", "v": f"bf16[1,{key_heads},{length},128]"}

    def peer(torch):
        q, k, v = (torch.randn([1, h, s, 128], device="cuda", dtype=torch.bfloat16)
                   for h, s in ((heads, queries), (key_heads, length), (key_heads, length)))
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda: attend(q, k, v, is_causal=causal, enable_gqa=heads != key_heads)

    flops = 4 * heads * queries * length * 128 / (2 if causal else 1)
    return {"text": graph(types, "attention(%q, %k, %v)" + (" {causal=true}" if causal else "")), "peer": peer, "flops": flops,
            "bytes": 2 * 128 * (2 * heads * queries + 2 * key_heads * length)}


def attention_gradients(length, heads):
    """Of forward and backward together."""
    case = attention(length, heads, heads, length, True)
    types = {name: f"bf16[1,{heads},{length},128]" for name in "qkv"}
    text = (f"graph g {{\n{inputs(types)}  %a = attention(%q, %k, %v) {{causal=true}}\n  %f = cast(%a) {{to=f32}}\n"
            "  %y = reduce(%f) {op=sum, axes=[0,1,2,3]}\n  output y = %y\n}\n")

    def peer(torch):
        q, k, v = (torch.randn([1, heads, length, 128], device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda: torch.autograd.grad(attend(q, k, v, is_causal=True).float().sum(), (q, k, v))

    return {"text": text, "wrt": "q,k,v", "peer": peer, "flops": 3.5 * case["flops"], "bytes": 3 * case["bytes"]}


def adds(count, fuses):
    lines = "".join(f"  %y{i + 1} = add(%y{i}, %b)\n" for i in range(count))
    text = f'graph g {{\n{inputs({"y0": "f32[1024]", "b": "f32[1024]"})}{lines}  output y = %y{count}\n}}\n'

    def peer(torch):
        x, b = (torch.randn(1024, device="cuda") for _ in range(2))

        def run():
            y = x
            for _ in range(count):
                y = y + b
            return y

        return run

    return {"text": text, "peer": peer, "launches": 1 if fuses else count, "options": [] if fuses else ["--no-fusion"]}


# Which bar a case has: how it is written, and what of a row must reach it.
def of_peer(share):
    return f"at least {share:.0%} of torch's rate", lambda row, limits: row["peer_seconds"] and row["peer_seconds"] / row["seconds"], share


def of_copying(share):
    return f"at least {share:.0%} of copying", lambda row, limits: row["bytes"] / row["seconds"] / limits["copy_bytes_s"], share


def of_launches(seconds):
    return f"at most {seconds * 1e6:.0f} us a launch", lambda row, limits: seconds * row["launches"] / row["seconds"], 1


def of_rate(flops):
    return f"at least {flops / 1e12:.0f} TFLOP/s", lambda row, limits: row["flops"] / row["seconds"] / flops, 1


BARS = {
    "product_bf16_8192": of_peer(0.9),
    "row_bf16": of_copying(0.78), "row_q4_k": of_copying(0.65), "row_q6_k": of_copying(0.65),
    "softmax": of_copying(0.85), "layer_norm": of_copying(0.85), "gelu": of_copying(0.85),
    "attention_causal_16k": of_rate(0.7 * 740e12),
    "attention_token_32k": of_copying(0.78),
    "attention_gradients_16k": of_rate(0.6 * 550e12),
    "adds_100": of_peer(3), "adds_100_unfused": of_launches(3e-6),
}


def cases():
    gelu = lambda torch, x: torch.nn.functional.gelu(x)
    return {
        "product_bf16_8192": product("bf16", 8192, 8192, 8192, False),
        "product_bf16_4096": product("bf16", 4096, 4096, 4096, True),
        "product_bf16_rows_512": product("bf16", 512, 4096, 14336, True),
        "product_f32_4096": product("f32", 4096, 4096, 4096, False),
        "row_bf16": product("bf16", 1, 4096, 65536, True),
        "row_f32": product("f32", 1, 4096, 32768, True),
        "row_q4_k": blocks("Q4_K", 144, 1, 4096, 65536),
        "row_q6_k": blocks("Q6_K", 210, 1, 4096, 65536),
        "rows_8_q4_k": blocks("Q4_K", 144, 8, 4096, 65536),
        "rows_64_q4_k": blocks("Q4_K", 144, 64, 4096, 14336),
        "rows_2048_q4_k": blocks("Q4_K", 144, 2048, 4096, 14336),
        "rows_2048_q6_k": blocks("Q6_K", 210, 2048, 4096, 14336),
        "mixture_16384_q4_k": mixture(16384, 2048, 768, 128),
        "row_norm_rounded": rounded_norm(1, 4096),
        "softmax": rows("softmax(%x) {axis=1}", lambda torch, x: torch.softmax(x, 1)),
        "layer_norm": {**rows("layer_norm(%x, %g, %b)", lambda torch, x: torch.nn.functional.layer_norm(x, (8192,))),
                       "text": graph({"x": "f32[8192,8192]", "g": "f32[1,8192]", "b": "f32[1,8192]"},
                                     "layer_norm(%x, %g, %b) {axes=[1], has_gamma=true, has_beta=true}")},
        "gelu": rows("gelu(%x)", gelu),
        "transpose": {**rows("transpose(%x) {perm=[1,0]}", lambda torch, x: x.T.contiguous())},
        "attention_causal_16k": attention(16384, 16, 16, 16384, True),
        "attention_token_32k": attention(32768, 32, 8, 1, False),
        "adds_100": adds(100, True),
        "adds_100_unfused": adds(100, False),
        "attention_gradients_16k": attention_gradients(16384, 16),
    }


MOST_SECONDS = 30  # of a case


def told_by(command, seconds):
    """What it prints; throws RuntimeError with its last words."""
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not done in {seconds:.0f} s") from None
    if told.returncode != 0:
        raise RuntimeError((told.stderr or told.stdout)[-500:])
    return told.stdout


def seconds_of_ours(args, case, most):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.rlx"
        path.write_text(case["text"])
        if "wrt" in case:
            path.write_text(told_by([args.rlx, "grad", path, "--wrt", case["wrt"]], most))
        told = told_by([args.rlx, "profile", path, "--device", args.device, "--repeats", "30", *case.get("options", [])], most)
    found = re.search(r"The fastest run: ([0-9.]+) (us|ms|s)\b", told)
    if not found:
        raise RuntimeError(told[-500:])
    return float(found[1]) * UNITS[found[2]]


def torch_or_none():
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def seconds_between_events(torch, run, repeats=20):
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return sorted(times)[len(times) // 2]


def limits(torch):
    x = torch.randn(8192, 8192, device="cuda")
    y = torch.empty_like(x)
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return {"copy_bytes_s": 2 * 4 * x.numel() / seconds_between_events(torch, lambda: y.copy_(x)),
            "bf16_flops": 2 * 8192**3 / seconds_between_events(torch, lambda: a @ b)}


def measured(args, torch, case, most):
    row = {"seconds": None, "peer_seconds": None, **{key: case[key] for key in ("flops", "bytes", "launches") if key in case}}
    if most < 1:
        return {**row, "error": "left out: no time"}
    try:
        row["seconds"] = seconds_of_ours(args, case, min(most, MOST_SECONDS))
        if torch and "peer" in case:
            row["peer_seconds"] = seconds_between_events(torch, case["peer"](torch))
    except Exception as error:  # of torch any: the other cases go on
        row["error"] = str(error)
    if torch:
        torch.cuda.empty_cache()
    return row


def line_of(name, row):
    if row["seconds"] is None:
        return f"{name:24} failed: {row['error']}"
    parts = [f"{name:24} {row['seconds'] * 1e6:10.1f} us"]
    if row["peer_seconds"]:
        parts.append(f"torch {row['peer_seconds'] * 1e6:10.1f} us, {row['peer_seconds'] / row['seconds']:.2f} of its rate")
    if "bytes" in row:
        parts.append(f"{row['bytes'] / row['seconds'] / 1e9:.0f} GB/s")
    if "flops" in row:
        parts.append(f"{row['flops'] / row['seconds'] / 1e12:.1f} TFLOP/s")
    return ", ".join([*parts, *([f"torch failed: {row['error']}"] if "error" in row else [])])


def page(files):
    """A table for each file."""
    parts = ["# Graphs on GPUs\n\nWritten by `bench/gpu_peers.py --page` from the files beside it; do not edit. Times are of the fastest run;"
             " torch's is the median between events of the device. Copying is torch's, of 256 MiB.\n"]
    for path in files:
        found = json.loads(pathlib.Path(path).read_text())
        limits = found["limits"]
        parts.append(f"## {found['gpu']}\n\nPyTorch {found['torch']} copies {limits['copy_bytes_s'] / 1e9:.0f} GB/s and multiplies bf16 at "
                     f"{limits['bf16_flops'] / 1e12:.0f} TFLOP/s.\n\n| case | us | torch's us | reached | bar | met |\n|---|---|---|---|---|---|")
        for name, row in found["cases"].items():
            if row["seconds"] is None:
                parts.append(f"| {name} | failed | | | | **no** |")
                continue
            parts.append(f"| {name} | {row['seconds'] * 1e6:.1f} | {row['peer_seconds'] * 1e6 if row['peer_seconds'] else float('nan'):.1f} | {reached(row, limits)} | {judged(name, row, limits)} |")
        parts.append("")
    return "\n".join(parts)


def reached(row, limits):
    parts = []
    if "flops" in row:
        parts.append(f"{row['flops'] / row['seconds'] / 1e12:.1f} TFLOP/s")
    if "bytes" in row:
        parts.append(f"{row['bytes'] / row['seconds'] / limits['copy_bytes_s']:.0%} of copying")
    return ", ".join([*parts, *([f"{row['peer_seconds'] / row['seconds']:.2f} of torch's rate"] if row["peer_seconds"] else [])])


def judged(name, row, limits):
    if name not in BARS:
        return "| "
    text, share, least = BARS[name]
    value = share(row, limits)
    return f"{text} | {'not known' if value is None else 'yes' if value >= least else '**no**'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rlx", default="build/release/rlx")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=600, help="that all cases may take")
    parser.add_argument("--page", help="the page to write, from files that --json wrote")
    parser.add_argument("names", nargs="*", help="cases, none: all; with --page files")
    args = parser.parse_args()
    if args.page:
        return pathlib.Path(args.page).write_text(page(args.names))
    all_cases = cases()
    unknown = [name for name in args.names if name not in all_cases]
    if unknown:
        sys.exit(f"no case {unknown[0]!r} (cases: {', '.join(all_cases)})")
    end = time.monotonic() + args.seconds
    torch = torch_or_none()
    results = {"torch": torch.__version__ if torch else None, "gpu": torch.cuda.get_device_name(0) if torch else None,
               "limits": limits(torch) if torch else None, "cases": {}}
    for name in args.names or all_cases:
        results["cases"][name] = measured(args, torch, all_cases[name], end - time.monotonic())
        print(line_of(name, results["cases"][name]), flush=True)
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
