"""What this machine has: tools, interpreters, devices; and what the sources are."""

import functools
import hashlib
import json
import os
import platform
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
def python_with(*modules):
    """A Python interpreter that can import all of the modules, or None."""
    for interpreter in dict.fromkeys([sys.executable, "python3", "/usr/bin/python3"]):
        if interpreter and output_of([interpreter, "-c", "import " + ", ".join(modules)], 120) is not None:
            return interpreter
    return None


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
        return f"{tool} is not built"
    found = [device for device in devices(tool) if device["backend"] == backend]
    usable = [device for device in found if device["available"]]
    if not usable:
        return next((device["reason"] for device in found), f"this build has no {backend} backend")
    if kernel and not any(kernel in device["kernels"] for device in usable):
        return f"no {backend} device offers the kernel route {kernel}"
    return None


def source_hashes():
    """SHA-256 of every source file, by path."""
    hashes = {}
    for folder in ("api", "backends", "bench", "host", "kernels", "site_scons", "tests", "tools"):
        for path, folders, files in os.walk(os.path.join(ROOT, folder)):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in sorted(files):
                full = os.path.join(path, name)
                if not name.endswith((".c", ".h", ".cu", ".py", ".json", ".sh")):
                    continue
                with open(full, "rb") as file:
                    hashes[os.path.relpath(full, ROOT)] = hashlib.sha256(file.read()).hexdigest()
    with open(os.path.join(ROOT, "SConstruct"), "rb") as file:
        hashes["SConstruct"] = hashlib.sha256(file.read()).hexdigest()
    return hashes


def describe(tool):
    """Everything about the machine and the sources that a result depends on."""
    versions = {}
    for name in ("gcc", "clang", "clang-14", "scons", "nvcc", "git"):
        text = output_of([name, "--version"]) if shutil.which(name) else None
        versions[name] = text.strip().splitlines()[0] if text and text.strip() else None
    revision = output_of(["git", "rev-parse", "HEAD"])
    changes = output_of(["git", "status", "--porcelain"])
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "python": sys.version.split()[0],
        "tools": versions,
        "git_revision": revision.strip() if revision else None,
        "git_changes": bool(changes.strip()) if changes is not None else None,
        "devices": devices(tool),
        "sources_sha256": source_hashes(),
    }
