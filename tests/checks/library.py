"""Checks of what the build made: the public headers, the exported symbols, and an installation as others would use it."""

import glob
import os
import re
import shutil
import tempfile

from checks.results import find_program, run

# What the shared library may need, by the start of the name. No driver is among them: they are opened at run time.
ALLOWED_NEEDED = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "libgomp.so", "libomp.so", "ld-linux")

CONSUMER = """
#include <stdio.h>
#include <gradguard/gradguard.h>

int main(void) {
  puts(gg_version_string());
  return gg_version() == 100u * GG_VERSION_MINOR + 10000u * GG_VERSION_MAJOR + GG_VERSION_PATCH ? 0 : 1;
}
"""

CMAKE_CONSUMER = """
cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(gradguard {version} REQUIRED)
foreach(kind gradguard static)
  add_executable(with_${{kind}} consumer.c)
  target_link_libraries(with_${{kind}} PRIVATE gradguard::${{kind}})
endforeach()
"""


def check_headers(results):
    """Each public header alone, as C11 and as C++17."""
    languages = [
        ("C11", ["gcc", "-std=c11", "-x", "c", "-Wstrict-prototypes"]),
        ("C++17", ["g++", "-std=c++17", "-x", "c++"]),
    ]
    for header in sorted(glob.glob("api/*.h")):
        for language, compiler in languages:
            warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
            unit = f'#include "{header}"\nextern int alone; /* ISO C wants one declaration in a unit */\n'
            code, text = run([*compiler, *warnings, "-I.", "-fsyntax-only", "-"], 60, input=unit)
            results.judge(f"header {header} alone as {language}", text or "failed" if code else "")


def check_symbols(results, build):
    library = os.path.join(build, "libgradguard.so")
    code, text = run(["nm", "-D", "--defined-only", library], 60)
    names = [line.split()[-1].split("@")[0] for line in text.splitlines()] if code == 0 else []
    foreign = [name for name in names if not name.startswith("gg_")]
    problem = text if code else "exported, but not gg_...: " + ", ".join(foreign) if foreign else ""
    if not names and not problem:
        problem = "nothing is exported"
    results.judge("every exported symbol starts with gg_", problem, f"{len(names)} symbols")

    declared = set()
    for header in glob.glob("api/*.h"):
        with open(header, encoding="utf-8") as file:
            declared |= set(re.findall(r"^GG_API[^;(]*?\b(gg_\w+)\s*\(", file.read(), re.MULTILINE))
    missing, extra = sorted(declared - set(names)), sorted(set(names) - declared)
    problem = f"declared but not exported: {missing}\n" if missing else ""
    problem += f"exported but not declared: {extra}" if extra else ""
    results.judge("exactly the public functions are exported", problem)

    code, text = run(["readelf", "-d", library], 60)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    refused = [name for name in needed if not name.startswith(ALLOWED_NEEDED)]
    problem = text if code else f"needs {', '.join(refused)}" if refused else ""
    results.judge("no driver library is linked", problem, " ".join(needed))


def check_installation(results, variant_options):
    """Installs to a folder of its own, then builds against it with pkg-config and with CMake."""
    folder = tempfile.mkdtemp(prefix="gradguard-install-")
    try:
        code, text = run(["scons", "-Q", *variant_options, "install", f"prefix={folder}"], 600)
        results.judge("install", text if code else "")
        if code:
            return
        with open(os.path.join(folder, "consumer.c"), "w", encoding="utf-8") as file:
            file.write(CONSUMER)
        environment = dict(os.environ, PKG_CONFIG_PATH=f"{folder}/lib/pkgconfig", LD_LIBRARY_PATH=f"{folder}/lib")
        script = "gcc consumer.c -o consumer $(pkg-config --cflags --libs gradguard) && ./consumer"
        code, text = run(["sh", "-ec", script], 120, cwd=folder, env=environment)
        version = "" if code else text.strip()
        results.judge("a program builds with pkg-config", text or "failed" if code else "", version)
        if not find_program("cmake"):
            results.skip("a program builds with CMake", "cmake is not installed")
            return
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(CMAKE_CONSUMER.format(version=version))
        script = (
            f"cmake -S . -B build -DCMAKE_PREFIX_PATH={folder} && cmake --build build"
            " && build/with_gradguard && build/with_static"
        )
        code, text = run(["sh", "-ec", script], 300, cwd=folder, env=environment)
        results.judge("a program builds with CMake", text or "failed" if code else "")
    finally:
        shutil.rmtree(folder)


def check_all(results, build):
    check_headers(results)
    check_symbols(results, build)
