#!/usr/bin/env python3
"""The guarded step beside PyTorch's unscale + check + clip_grad_norm_ + AdamW: the same shapes, in strict alternation, in
one process, on the CPU or on a CUDA device.

    bench/compare_pytorch.py [--device cpu|cuda] [--shapes llama-1.2b] [--dtype f32|bf16|f16] [--samples 10]
                             [--no-compile] [--json FILE]

Gradients are under a loss scale of 1024. PyTorch's optimizer steps FP32 parameters and needs FP32 gradients, so half
gradients are first copied to FP32, which is timed, as a training loop would have to do it. PyTorch runs as it is fastest:
AdamW fused where this version has it for the device, else foreach on CUDA and tensor by tensor on a CPU, where foreach
makes many temporaries. The results are compared: the largest difference of a parameter, relative to the largest one.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [BENCH, os.path.join(os.path.dirname(BENCH), "tools")]

import torch  # noqa: E402

import gradguard_ctypes as gg  # noqa: E402
from regressions.arguments import at_least, output_file  # noqa: E402

SCALE, MAX_NORM = 1024.0, 1.0
DTYPES = {"f32": (torch.float32, gg.F32), "f16": (torch.float16, gg.F16), "bf16": (torch.bfloat16, gg.BF16)}


def shapes_of(name, program):
    """The one list of shapes is the C benchmark's."""
    if re.fullmatch(r"0*[1-9]\d*x0*[1-9]\d*", name):
        tensors, elements = (int(part) for part in name.split("x"))
        return [[elements]] * tensors
    listed = json.loads(subprocess.run([program, "--list-shapes"], capture_output=True, text=True, check=True).stdout)
    if name not in listed:
        sys.exit(f"compare_pytorch.py: there is no set of tensors {name!r}: {', '.join(listed)} or TxN")
    return listed[name]


class Tensors:
    """Parameters and gradients, made from one seed."""

    def __init__(self, shapes, dtype, device, seed):
        generator = torch.Generator(device=device).manual_seed(seed)

        def uniform(shape, size):
            return (torch.rand(shape, generator=generator, device=device) * 2 - 1).mul_(size)

        self.gradients = [uniform(shape, 0.02 * SCALE).to(dtype) for shape in shapes]
        self.parameters = [uniform(shape, 0.05) for shape in shapes]


class Ours:
    name = "gradguard"

    def __init__(self, library, tensors, device, code):
        cuda = device == "cuda"
        # PyTorch's own stream is the NULL stream, which cannot be adopted; a stream of ours is waited for by commit.
        self.context = gg.Context(library, "cuda" if cuda else "cpu")
        self.library, self.tensors = library, tensors
        self.state = [[torch.zeros_like(p) for p in tensors.parameters] for _ in range(2)]
        rows = []
        for i, (parameter, gradient) in enumerate(zip(tensors.parameters, tensors.gradients)):
            roles = {gg.PARAMETER: parameter, gg.GRADIENT: gradient}
            roles[gg.EXP_AVG], roles[gg.EXP_AVG_SQ] = self.state[0][i], self.state[1][i]
            rows.append({
                role: gg.flat_tensor(
                    self.context.wrap(t.data_ptr(), t.numel() * t.element_size(), cuda),
                    code if role == gg.GRADIENT else gg.F32,
                    t.numel(),
                )
                for role, t in roles.items()
            })
        if cuda:
            torch.cuda.synchronize()
        self.group = gg.Group(self.context, rows)
        self.adamw = gg.sized(gg.AdamWOptions)
        self.adamw.learning_rate, self.adamw.beta1, self.adamw.beta2 = 1e-3, 0.9, 0.999
        self.adamw.epsilon, self.adamw.weight_decay, self.adamw.gradient_scale = 1e-8, 1e-2, SCALE
        self.guard = gg.sized(gg.GuardOptions)
        self.guard.clip, self.guard.max_norm, self.guard.clip_epsilon = True, MAX_NORM, 1e-6

    def step(self):
        self.group.step(self.adamw, self.guard)

    def close(self):
        self.group.close()
        self.context.close()


class PyTorch:
    """Unscale and check as GradScaler does, clip_grad_norm_, AdamW; fused where this PyTorch has it."""

    name = "torch eager"

    def __init__(self, tensors, device):
        self.device, self.source = device, tensors.gradients
        self.parameters = [torch.nn.Parameter(p) for p in tensors.parameters]
        options = {"lr": 1e-3, "weight_decay": 1e-2}
        try:
            self.optimizer = torch.optim.AdamW(self.parameters, fused=True, **options)
            self.kind = "fused"
        except (TypeError, RuntimeError):
            self.optimizer = torch.optim.AdamW(self.parameters, foreach=device == "cuda", **options)
            self.kind = "foreach" if device == "cuda" else "for loop"
        self.unscale = foreach_unscale if has_foreach_unscale(device) else loop_unscale
        self.inverse = torch.tensor(1.0 / SCALE, device=device)
        self.found = torch.zeros((), device=device)
        # The gradients that the optimizer sees; refilled before each step, since unscaling is in place.
        self.gradients = [torch.empty_like(p, dtype=torch.float32) for p in tensors.parameters]

    def refill(self):
        """What backward does: fresh gradients. FP32 ones are written where the optimizer takes them, untimed."""
        if self.source[0].dtype == torch.float32:
            copy_all(self.gradients, self.source)

    def step(self):
        if self.source[0].dtype != torch.float32:
            copy_all(self.gradients, self.source)
        for parameter, gradient in zip(self.parameters, self.gradients):
            parameter.grad = gradient
        self.found.zero_()
        self.unscale(self.gradients, self.found, self.inverse)
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, MAX_NORM)
        if self.unscale is loop_unscale:
            self.found += ~torch.isfinite(norm)
        if self.found.item() == 0:
            self.optimizer.step()
        if self.device == "cuda":
            torch.cuda.synchronize()


def copy_all(targets, sources):
    if hasattr(torch, "_foreach_copy_"):
        torch._foreach_copy_(targets, sources)
    else:
        for target, source in zip(targets, sources):
            target.copy_(source)


def foreach_unscale(gradients, found, inverse):
    """What GradScaler.unscale_ calls."""
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)


def loop_unscale(gradients, found, inverse):
    """For a PyTorch that has GradScaler's kernel for CUDA alone. The norm, which is there anyway, serves as the check."""
    for gradient in gradients:
        gradient.mul_(inverse)


def has_foreach_unscale(device):
    try:
        foreach_unscale([torch.zeros(1, device=device)], torch.zeros((), device=device), torch.ones((), device=device))
    except (NotImplementedError, RuntimeError):
        return False
    return True


class Compiled:
    """The whole step under torch.compile: unscale, norm, clip and AdamW as PyTorch expressions."""

    name = "torch.compile"

    def __init__(self, tensors, device):
        self.device, self.gradients = device, tensors.gradients
        self.parameters = tensors.parameters
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.count = torch.zeros((), device=device)

        def whole(parameters, gradients, first, second, count):
            unscaled = [g.float() * (1.0 / SCALE) for g in gradients]
            norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in unscaled]))
            coefficient = torch.clamp(MAX_NORM / (norm + 1e-6), max=1.0)
            correction1, correction2 = 1 - 0.9**count, 1 - 0.999**count
            for p, g, m, v in zip(parameters, unscaled, first, second):
                g = g * coefficient
                m.mul_(0.9).add_(g, alpha=0.1)
                v.mul_(0.999).addcmul_(g, g, value=0.001)
                p.mul_(1 - 1e-3 * 1e-2).sub_(1e-3 * (m / correction1) / ((v / correction2).sqrt() + 1e-8))
            return norm

        self.whole = torch.compile(whole)

    def restart(self, tensors):
        """Back to where the others begin, after the step that compiled it."""
        copy_all(self.parameters, tensors.parameters)
        for state in (*self.first, *self.second, self.count):
            state.zero_()

    def step(self):
        self.count += 1
        if not torch.isfinite(self.whole(self.parameters, self.gradients, self.first, self.second, self.count)).item():
            raise RuntimeError("the norm is not finite")
        if self.device == "cuda":
            torch.cuda.synchronize()


def copy_rates(device):
    """Bytes read and written a second by PyTorch's own kernels: a copy and, on a CPU, a multiplication in place, since a
    copy there fetches what it overwrites and so moves half as much again as it counts."""
    elements = (1 << 28) if device == "cuda" else (1 << 26)
    source, target = (torch.full((elements,), 0.7, device=device) for _ in range(2))
    work = {"copy": lambda: target.copy_(source)}
    if device == "cpu":
        work["in place"] = lambda: target.mul_(1.0)
    rates = {name: [] for name in work}
    for _ in range(6):
        for name, step in work.items():
            if device == "cuda":
                torch.cuda.synchronize()
            begin = time.perf_counter()
            step()
            if device == "cuda":
                torch.cuda.synchronize()
            rates[name].append(8 * elements / (time.perf_counter() - begin))
    return {name: values[1:] for name, values in rates.items()}


def measure(contenders, samples, warmup):
    times = {c.name: [] for c in contenders}
    for i in range(warmup + samples):
        for contender in contenders:
            if hasattr(contender, "refill"):
                contender.refill()
                if contender.device == "cuda":
                    torch.cuda.synchronize()
            begin = time.perf_counter()
            contender.step()
            if i >= warmup:
                times[contender.name].append((time.perf_counter() - begin) * 1e3)
    return times


def largest_difference(ours, theirs):
    """Of parameters, relative to the largest one."""
    largest = max(float(p.detach().abs().max()) for p in theirs)
    return max(float((a - b.detach()).abs().max()) for a, b in zip(ours, theirs)) / largest


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shapes", default="16x4000000")
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="f32")
    parser.add_argument("--samples", type=at_least(1), default=10)
    parser.add_argument("--warmup", type=at_least(0), default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--library", help="path of libgradguard.so")
    parser.add_argument("--program", default=os.path.join(gg.ROOT, "build/release-gcc/gradguard-bench"))
    parser.add_argument("--json", type=output_file, help="file for everything measured")
    return parser.parse_args()


def make_contenders(arguments, shapes):
    """Ours, PyTorch and, if it works, PyTorch compiled; and why one was left out, by name."""
    dtype, code = DTYPES[arguments.dtype]

    def fresh():
        return Tensors(shapes, dtype, arguments.device, arguments.seed)

    contenders = [Ours(gg.load(arguments.library), fresh(), arguments.device, code), PyTorch(fresh(), arguments.device)]
    notes = {}
    if not arguments.no_compile and hasattr(torch, "compile"):
        compiled = Compiled(fresh(), arguments.device)
        try:
            compiled.step()
            compiled.restart(fresh())
            contenders.append(compiled)
        except Exception as error:  # no compiler, or a graph too large
            notes["torch.compile"] = f"{type(error).__name__}: {str(error)[:200]}"
    return contenders, notes


def report_times(times, floor):
    """Prints them and returns the rows of the file."""
    rows = []
    own = statistics.median(next(iter(times.values())))
    for name, samples in times.items():
        median = statistics.median(samples)
        rows.append({"name": name, "median_ms": median, "min_ms": min(samples), "max_ms": max(samples),
                     "ratio": median / floor, "samples_ms": samples})
        print(f"{name:14} {median:10.4f} ms ({min(samples):.4f} to {max(samples):.4f}), ratio to floor "
              f"{median / floor:8.3f}, {median / own:7.2f} x ours")
    return rows


def main():
    arguments = parse_arguments()
    # Debian's PyTorch takes one thread and tells OpenMP so, which is ours too: both get all processors.
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    shapes = shapes_of(arguments.shapes, arguments.program)
    contenders, notes = make_contenders(arguments, shapes)
    ours, eager = contenders[:2]
    before = copy_rates(arguments.device)
    times = measure(contenders, arguments.samples, arguments.warmup)
    after = copy_rates(arguments.device)
    rate = max(statistics.median(before[name] + after[name]) for name in before)
    parameters = ours.tensors.parameters
    differences = {c.name: largest_difference(parameters, c.parameters) for c in contenders[1:]}

    elements = sum(p.numel() for p in parameters)
    floor = elements * (2 * ours.tensors.gradients[0].element_size() + 24) / rate * 1e3
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else ours.context.device().name.decode()
    print(f"{arguments.shapes}, {len(shapes)} tensors, {elements} elements, {arguments.dtype} gradients, {name}, "
          f"PyTorch {torch.__version__} ({eager.kind}, {torch.get_num_threads()} threads), seed {arguments.seed}")
    print(f"copy {rate / 1e9:.1f} GB/s, floor {floor:.4f} ms")
    rows = report_times(times, floor)
    difference = max(differences.values())
    for peer, value in differences.items():
        print(f"largest difference of a parameter to {peer} after {arguments.samples + arguments.warmup} steps: "
              f"{value:.2e} of the largest parameter")
    for peer, note in notes.items():
        print(f"{peer}: left out, {note}")
    if arguments.json:
        document = {
            "program": "compare_pytorch.py", "shapes": arguments.shapes, "tensors": len(shapes), "elements": elements,
            "dtype": arguments.dtype, "device": arguments.device, "name": name, "torch": torch.__version__,
            "optimizer": eager.kind, "build": ours.library.gg_build_description().decode(), "kernel": ours.context.kernel(),
            "driver": ours.context.device().driver.decode(), "revision": gg.revision(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "threads": torch.get_num_threads(),
            "seed": arguments.seed, "samples": arguments.samples, "warmup": arguments.warmup,
            "copy_gb_per_s": rate / 1e9, "floor_ms": floor, "largest_difference": difference, "differences": differences,
            "notes": notes, "rows": rows,
        }
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
    ours.close()
    if not difference <= 1e-5:
        print("compare_pytorch.py: the results differ by more than rounding", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
