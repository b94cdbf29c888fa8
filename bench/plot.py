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
    ("gradguard, OpenCL", SKY),
    ("separate clip kernel, CUDA", GREEN),
    ("PyTorch, torch.compile", ORANGE),
    ("PyTorch, fused AdamW", VERMILION),
]
TITLES = {
    "llama-1.2b": "Llama 1.2B",
    "gpt2-124m": "GPT-2 124M",
    "small-5000x1000": "5000 tensors of 1000",
    "tiny-4x65536": "4 tensors of 65536",
}
ORDER = list(TITLES)


def series_of_bench(row):
    """Which series a row of gradguard-bench belongs to; None: to none."""
    if row["path"] == "staged":
        return "separate clip kernel, CUDA" if row["backend"] == "cuda" else None
    if row["path"] != "fused":
        return None
    return {"cuda": "gradguard, CUDA", "opencl": "gradguard, OpenCL"}.get(row["backend"])


def collect(files):
    """cases[(shapes, dtype)][series] = ratio; of several routes the first one measured."""
    cases, machine = {}, set()
    for name in files:
        with open(name, encoding="utf-8") as file:
            document = json.load(file)
        if document["program"] == "gradguard-bench":
            case = cases.setdefault((document["settings"]["shapes"], document["settings"]["dtype"]), {})
            for row in document["rows"]:
                series = series_of_bench(row)
                if series and row["name"].startswith("NVIDIA"):
                    case.setdefault(series, row["ratio"])
                    machine.add(row["name"])
        else:
            case = cases.setdefault((document["shapes"], document["dtype"]), {})
            names = {"torch eager": "PyTorch, fused AdamW", "torch.compile": "PyTorch, torch.compile"}
            for row in document["rows"]:
                if row["name"] in names:
                    case[names[row["name"]]] = row["ratio"]
    return cases, machine


def label_of(ratio):
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def draw_ratio(out, files):
    cases, machine = collect(files)
    keys = sorted(cases, key=lambda key: (ORDER.index(key[0]) if key[0] in ORDER else 99, key[1] != "f32"))
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.78 * len(keys)))
    height, ticks, labels, seen = 0.16, [], [], {}
    for place, key in enumerate(keys):
        present = [(name, colour) for name, colour in SERIES if name in cases[key]]
        for i, (name, colour) in enumerate(present):
            ratio = cases[key][name]
            y = place + (i - (len(present) - 1) / 2) * height
            seen[name] = axes.barh(y, ratio - 0.8, left=0.8, height=height * 0.86, color=colour)
            axes.text(ratio * 1.03, y, label_of(ratio), va="center", ha="left", fontsize=8)
        ticks.append(place)
        labels.append(f"{TITLES.get(key[0], key[0])}\n{key[1]} gradients")
    axes.set_yticks(ticks, labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color=GREY, linewidth=1)
    most = max(max(case.values()) for case in cases.values())
    axes.set_xlim(0.8, most * 2)
    axes.set_xticks([1, 2, 5, 10, 100, 1000], ["1", "2", "5", "10", "100", "1000"])
    axes.minorticks_off()
    axes.text(1.04, -0.62, "a plain copy of as many bytes", fontsize=8, color=GREY)
    axes.set_xlabel("time of a whole step over the time of a copy (logarithmic, less is better)")
    axes.set_title(f"A guarded AdamW step on one {', '.join(sorted(machine)) or 'GPU'}", loc="left", fontweight="bold", pad=16)
    axes.legend([seen[name] for name, _ in SERIES if name in seen], [name for name, _ in SERIES if name in seen],
                loc="upper right", frameon=False, fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
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
        for name, key, colour, marker in ((theirs, "torch", VERMILION, "s"), ("gradguard", "ours", BLUE, "o")):
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
