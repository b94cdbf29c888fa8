"""What this machine has: tools, interpreters, devices; and what the sources are."""

import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def output_of(command, seconds=60):
    """Standard output of a command, or None if it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def find_program(*names):
    """The first of the named programs that there is, or None."""
    return next((name for name in names if shutil.which(name)), None)


@functools.lru_cache(maxsize=None)
def python_modules(*modules):
    """A Python interpreter that can import all of the modules, and their versions; (None, {}) if there is none."""
    names = ", ".join(modules)
    ask = f"import json, {names}; print(json.dumps({{m.__name__: str(m.__version__) for m in ({names},)}}))"
    fetched = os.path.join(ROOT, "build/tools/bin/python")  # where ./dev puts what the distribution does not have
    for interpreter in dict.fromkeys([sys.executable, "python3", "/usr/bin/python3", fetched]):
        text = output_of([interpreter, "-B", "-c", ask], 120) if interpreter else None
        try:
            if text:
                return interpreter, json.loads(text)
        except ValueError:
            pass
    return None, {}


def python_with(*modules):
    return python_modules(*modules)[0]


@functools.lru_cache(maxsize=None)
def devices(tool):
    """What `gradguard devices` lists; empty without the tool."""
    text = output_of([tool, "devices", "--report", "json"], 120) if os.access(tool, os.X_OK) else None
    try:
        return json.loads(text)["devices"] if text else []
    except (ValueError, KeyError):
        return []


def why_no_device(tool, backend, kernel=None):
    """Why no device of the backend can be used, or None if one can."""
    if not os.access(tool, os.X_OK):
        return f"{os.path.relpath(tool, ROOT)} is not built, which lists the devices"
    found = [device for device in devices(tool) if device["backend"] == backend]
    usable = [device for device in found if device["available"]]
    if not usable:
        return next((device["reason"] for device in found), f"this build has no {backend} backend")
    if kernel and not any(kernel in device["kernels"] for device in usable):
        return f"no {backend} device offers the kernel variant {kernel}"
    return None


def source_hashes():
    """SHA-256 of every source file, by path."""
    hashes = {}
    for folder in ("api", "backends", "bench", "examples", "host", "kernels", "site_scons", "tests", "tools"):
        for path, folders, files in os.walk(os.path.join(ROOT, folder)):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(files):
                full = os.path.join(path, name)
                if not name.endswith((".c", ".h", ".cu", ".py", ".json", ".sh")):
                    continue
                with open(full, "rb") as file:
                    hashes[os.path.relpath(full, ROOT)] = hashlib.sha256(file.read()).hexdigest()
    with open(os.path.join(ROOT, "SConstruct"), "rb") as file:
        hashes["SConstruct"] = hashlib.sha256(file.read()).hexdigest()
    return hashes


def describe(tool, modules=()):
    """Everything about the machine and the sources that a result depends on. `modules`: of Python, that it needs."""
    versions = {}
    for name in ("cc", "gcc", "clang", "clang-14", "scons", "nvcc", "git"):
        text = output_of([name, "--version"]) if shutil.which(name) else None
        versions[name] = version_line(text)
    versions["gradguard"] = version_line(output_of([tool, "--version"])) if os.access(tool, os.X_OK) else None
    for module in modules:
        versions[module] = python_modules(*modules)[1].get(module)
    revision = output_of(["git", "rev-parse", "HEAD"])
    changes = output_of(["git", "status", "--porcelain"])
    return {
        "system": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "tools": versions,
        "git_revision": revision.strip() if revision else None,
        "git_changes": bool(changes.strip()) if changes is not None else None,
        "devices": devices(tool),
        "sources_sha256": source_hashes(),
    }


def version_line(text):
    """The line that has the version; SCons begins with its name and copyright."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return next((line for line in lines if re.search(r"\d+\.\d+", line)), lines[0] if lines else None)


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
