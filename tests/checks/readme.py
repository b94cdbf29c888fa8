"""Checks that README.md and docs/ are true: the program in the README compiles and prints what it says, the tool's reports
are those shown, links lead somewhere, and no measured number is left out."""

import glob
import os
import re
import shutil
import tempfile

from checks.results import run

DOCUMENTS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md", "examples/data/README.md"]

# Lines of a report that depend on the machine.
OF_THE_MACHINE = re.compile(r"^device  ")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def session(block):
    """The commands of a console block, each with the output that is shown for it."""
    steps = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            steps.append([line[2:].rstrip("\n"), ""])
        else:
            steps[-1][1] += line
    return steps


def make_prefix(folder, build):
    """What `scons install` would have put there, as far as pkg-config and the linker are concerned."""
    os.makedirs(f"{folder}/lib/pkgconfig")
    os.symlink(os.path.abspath(f"{build}/include"), f"{folder}/include")
    for path in glob.glob(f"{build}/libgradguard.so*"):
        os.symlink(os.path.abspath(path), f"{folder}/lib/{os.path.basename(path)}")
    with open("packaging/gradguard.pc.in", encoding="utf-8") as file:
        text = file.read()
    for name, value in {"@PREFIX@": folder, "@VERSION@": "0", "@STATIC_LIBS@": ""}.items():
        text = text.replace(name, value)
    with open(f"{folder}/lib/pkgconfig/gradguard.pc", "w", encoding="utf-8") as file:
        file.write(text)


def comparable(output):
    return [line for line in output.splitlines() if not OF_THE_MACHINE.match(line)]


def check_sessions(results, build, text):
    folder = tempfile.mkdtemp(prefix="gradguard-readme-")
    try:
        make_prefix(folder, build)
        os.symlink(os.path.abspath("examples"), f"{folder}/examples")
        programs = blocks(text, "c")
        results.judge("the README has one C program", "" if len(programs) == 1 else f"it has {len(programs)}")
        with open(f"{folder}/step.c", "w", encoding="utf-8") as file:
            file.write("".join(programs))
        environment = dict(
            os.environ,
            PKG_CONFIG_PATH=f"{folder}/lib/pkgconfig",
            LD_LIBRARY_PATH=f"{folder}/lib",
            PATH=os.path.abspath(build) + os.pathsep + os.environ["PATH"],
        )
        for block in blocks(text, "console"):
            for command, expected in session(block):
                code, output = run(["sh", "-c", command], 120, cwd=folder, env=environment)
                problem = f"{output}\n(exit status {code})" if code else ""
                if not code and comparable(output) != comparable(expected):
                    problem = f"it prints\n{output}\nand the README shows\n{expected}"
                results.judge(f"README: {command[:60]}", problem)
    finally:
        shutil.rmtree(folder)


def anchors(text):
    """The names that headings get on the usual hosts."""
    names = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in names}


def check_links(results, texts):
    problems = []
    for path, text in texts.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            place = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(place):
                problems.append(f"{path}: {target} is not there")
            elif anchor and anchor not in anchors(texts.get(place, "")):
                problems.append(f"{path}: {place} has no heading for #{anchor}")
    results.judge("links of the documents lead somewhere", "\n".join(problems), f"{len(texts)} documents")


def check_complete(results, texts):
    left = [f"{path}: {token}" for path, text in texts.items() for token in sorted(set(re.findall(r"@@\w+@@", text)))]
    results.judge("no measured number is left out of the documents", "\n".join(left))


def check_readme(results, build):
    paths = [path for path in DOCUMENTS if os.path.exists(path)] + sorted(glob.glob("docs/*.md"))
    texts = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()
    check_sessions(results, build, texts["README.md"])
    check_links(results, texts)
    check_complete(results, texts)
