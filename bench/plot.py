#!/usr/bin/env python3
"""Draws the charts of the README from measured JSON files.

    bench/plot.py ratio OUT FILE...      time of a whole step over its floor, for each case, device and peer; the files are
                                         those of gradguard-bench and compare_pytorch.py
    bench/plot.py accuracy OUT FILE      error of the norm over magnitudes and sizes; the file is accuracy.py's

Writes OUT.svg and OUT.png. Needs matplotlib.
"""

import json
import sys

sys.dont_write_bytecode = True

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Colours that people with any colour vision tell apart (Okabe and Ito 2008).
BLUE, SKY, GREEN, ORANGE, VERMILION, GREY = "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#666666"
SERIES = [
    ("gradguard, CUDA", BLUE),
    ("gradguard, CPU backend", BLUE),
    ("gradguard, OpenCL", SKY),
    ("gradguard, staged", GREEN),
    ("PyTorch, torch.compile", ORANGE),
    ("PyTorch", VERMILION),
]
TITLES = {
    "llama-1.2b": "Llama 1.2B",
    "gpt2-124m": "GPT-2 124M",
    "small-5000x1000": "5000 tensors of 1000",
    "tiny-4x65536": "4 tensors of 65536",
}
ORDER = list(TITLES)
PEERS = {"torch eager": "PyTorch", "torch.compile": "PyTorch, torch.compile"}


def series_of_bench(row):
    """Which series a row of gradguard-bench belongs to; None: to none."""
    if row["path"] == "staged":
        return None if row["backend"] == "opencl" else "gradguard, staged"
    if row["path"] != "fused":
        return None
    return {"cuda": "gradguard, CUDA", "cpu": "gradguard, CPU backend", "opencl": "gradguard, OpenCL"}[row["backend"]]


def on_gpu(row):
    return row.get("kind") == "gpu" or row["name"].startswith("NVIDIA")


def machine_of(row):
    return f"one {row['name']}" if on_gpu(row) else f"{row['compute_units']} threads of an {row['name']}"


class Panel:
    """The cases of GPUs or of processors: cases[(shapes, dtype)][series] = ratio; of several variants the first one.
    beside[(shapes, dtype)] is gradguard's ratio in the process in which PyTorch had its turns."""

    def __init__(self):
        self.cases, self.machines, self.beside = {}, [], {}

    def add(self, key, series, ratio, machine):
        self.cases.setdefault(key, {}).setdefault(series, ratio)
        if machine and machine not in self.machines:
            self.machines.append(machine)

    def keys(self):
        return sorted(self.cases, key=lambda key: (ORDER.index(key[0]) if key[0] in ORDER else 99, key[1] != "f32"))


def collect(files):
    """Panels for GPUs and for processors, from the files in their order."""
    gpus, processors = Panel(), Panel()
    for name in files:
        with open(name, encoding="utf-8") as file:
            document = json.load(file)
        if document["program"] == "gradguard-bench":
            settings = document["settings"]
            if settings["mode"] != "in-place" or settings["amsgrad"]:
                continue  # the chart compares like with like
            for row in document["rows"]:
                series = series_of_bench(row)
                if series:
                    machine = None if row["backend"] == "opencl" else machine_of(row)
                    key = (settings["shapes"], settings["dtype"])
                    (gpus if on_gpu(row) else processors).add(key, series, row["ratio"], machine)
        else:
            panel = gpus if document["device"] == "cuda" else processors
            key = (document["shapes"], document["dtype"])
            for row in document["rows"]:
                if row["name"] in PEERS:
                    panel.add(key, PEERS[row["name"]], row["ratio"], None)
                else:
                    panel.beside[key] = row["ratio"]
    return gpus, processors


def label_of(ratio):
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def title_of(shapes):
    if shapes in TITLES:
        return TITLES[shapes]
    tensors, elements = shapes.split("x")
    return f"{tensors} tensors of {int(elements):,}"


BESIDE = "the same, taking turns with PyTorch"
HEIGHT = 0.16  # of a bar; a case takes 1


def draw_panel(axes, panel, most):
    """Returns a bar of each series that is there, for the legend."""
    ticks, labels, seen = [], [], {}
    for place, key in enumerate(panel.keys()):
        present = [(name, colour) for name, colour in SERIES if name in panel.cases[key]]
        for i, (name, colour) in enumerate(present):
            ratio = panel.cases[key][name]
            y = place + (i - (len(present) - 1) / 2) * HEIGHT
            seen[name] = axes.barh(y, ratio - 0.8, left=0.8, height=HEIGHT * 0.86, color=colour)
            axes.text(ratio * 1.03, y, label_of(ratio), va="center", ha="left", fontsize=8)
            beside = panel.beside.get(key)
            if i == 0 and beside and beside > 1.5 * ratio:  # nearer ones would only hide the numbers
                seen[BESIDE] = axes.plot(beside, y, marker="D", markersize=4, color=colour, linestyle="none")[0]
                axes.text(beside * 1.1, y, label_of(beside), va="center", ha="left", fontsize=8)
        ticks.append(place)
        labels.append(f"{title_of(key[0])}\n{key[1]} gradients")
    axes.set_yticks(ticks, labels)
    axes.set_ylim(len(ticks) - 0.45, -0.55)
    axes.set_xscale("log")
    axes.axvline(1, color=GREY, linewidth=1)
    axes.set_xlim(0.8, most * 2)
    axes.set_xticks([1, 2, 5, 10, 100, 1000], ["1", "2", "5", "10", "100", "1000"])
    axes.minorticks_off()
    axes.text(1.04, -0.5, "a plain copy of as many bytes", fontsize=8, color=GREY)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return seen


def draw_ratio(out, files):
    gpus, processors = collect(files)
    panels = [panel for panel in (gpus, processors) if panel.cases]
    most = max(ratio for panel in panels for case in panel.cases.values() for ratio in case.values())
    sizes = [len(panel.cases) for panel in panels]
    figure, rows = plt.subplots(len(panels), 1, figsize=(9, 0.9 + sum(0.55 + 0.8 * size for size in sizes)),
                                squeeze=False, height_ratios=sizes)
    for axes, panel in zip(rows[:, 0], panels):
        seen = draw_panel(axes, panel, most)
        axes.set_title(f"A guarded AdamW step on {', '.join(panel.machines)}", loc="left", fontweight="bold", pad=10)
        order = [SERIES[0][0], BESIDE, *(name for name, _ in SERIES[1:])]
        names = [name for name in order if name in seen]
        axes.legend([seen[name] for name in names], names, loc="upper right", frameon=False, fontsize=9)
    rows[-1, 0].set_xlabel("time of a whole step over the time of a copy (logarithmic, less is better)")
    save(figure, out)


def draw_accuracy(out, files):
    with open(files[0], encoding="utf-8") as file:
        document = json.load(file)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    least = 1e-9
    device = {"cpu": "CPU", "cuda": "CUDA"}[document["torch_device"]]
    theirs = f"PyTorch {document['torch'].split('+')[0]} on {device}, FP32"
    for axes, part, label in ((left, "magnitudes", "magnitude of the gradients"), (right, "sizes", "number of elements")):
        rows = document[part]
        for name, key, colour, marker in ((theirs, "torch", VERMILION, "s"), ("gradguard (the same bits on every backend)", "ours", BLUE, "o")):
            points = [(row["x"], row[key]) for row in rows]
            good = [(x, min(max(error, least), 1.0)) for x, error in points if error is not None]
            lost = [x for x, error in points if error is None or error >= 0.99]
            axes.plot([x for x, _ in good], [y for _, y in good], color=colour, marker=marker, markersize=4, linewidth=1,
                      label=name)
            if lost:
                axes.plot(lost, [1.0] * len(lost), color=colour, marker="x", linestyle="none")
        axes.axhline(2e-7, color=GREY, linewidth=1, linestyle="--")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(label)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    left.set_ylabel("relative error of the norm")
    left.text(left.get_xlim()[0] * 1.5, 2.4e-7, "2e-7, the promise", fontsize=8, color=GREY)
    left.text(0.02, 1.02, "x: overflow to Inf or underflow to 0", fontsize=8, color=GREY, transform=left.transAxes)
    right.legend(frameon=False)
    figure.suptitle("The norm is right at any magnitude and any size", x=0.07, ha="left", fontweight="bold")
    save(figure, out)


def save(figure, out):
    figure.tight_layout()
    matplotlib.rcParams["svg.hashsalt"] = "gradguard"  # the same file for the same data
    figure.savefig(out + ".svg", metadata={"Date": None})
    figure.savefig(out + ".png", dpi=150)


def main():
    kinds = {"ratio": draw_ratio, "accuracy": draw_accuracy}
    if len(sys.argv) < 4 or sys.argv[1] not in kinds:
        print(__doc__, file=sys.stderr)
        return 2
    kinds[sys.argv[1]](sys.argv[2], sys.argv[3:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
