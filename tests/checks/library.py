"""Checks of what the build made: the public headers, the exported symbols, and an installation as others would use it."""

import glob
import os
import re
import shutil
import stat
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


def problem_of_static_program(build, kind, program):
    words = ["gcc", kind, "-std=c11", f"-I{build}/include", "tests/builds/chosen_device.c", "-o", program]
    code, text = run([*words, f"{build}/libgradguard.a", "-fopenmp", "-ldl", "-lpthread", "-lm"], 120)
    if code:
        return text
    for device in ("auto", "opencl", "cuda"):
        status, start = (0, "cpu\n") if device == "auto" else (1, "GG_ERROR_NO_DRIVER: ")
        code, text = run([program, device], 120)
        if code != status or not text.startswith(start) or "linked statically" not in text:
            return f"{text}(exit status {code} on {device})"
    return ""


def check_static_program(results, build):
    """A program without a dynamic loader cannot open drivers, which crashed it; it is told so, and has the CPU."""
    if not re.fullmatch(r"(release|debug)-gcc", os.path.basename(build)):
        return  # neither sanitizers nor clang's OpenMP come as static libraries
    with tempfile.TemporaryDirectory(prefix="gradguard-static-") as folder:
        for kind in ("-static", "-static-pie"):
            problem = problem_of_static_program(build, kind, os.path.join(folder, "program"))
            results.judge(f"a program linked with {kind} uses the CPU and says why", problem)


class Checkout:
    """A folder with the sources, and SCons in it with the options of one build."""

    def __init__(self, folder, options, **process):
        self.folder, self.options, self.process = folder, options, process

    def scons(self, *words, umask="022", **variables):
        """Exit status and output."""
        environment = {name: value for name, value in os.environ.items() if name != "DESTDIR"}
        script = f'umask {umask}; exec scons -Q "$@"'
        return run(["sh", "-c", script, "sh", *self.options, *words], 600, cwd=self.folder,
                   env={**environment, **variables}, **self.process)

    def products(self):
        """What was built and when, but for what every run of SCons writes."""
        found = {}
        for path in glob.glob(f"{self.folder}/build/**", recursive=True):
            name = os.path.relpath(path, self.folder)
            if os.path.isfile(path) and not re.search(r"/configure|^build/(logs/|[^/]*$)", name):
                found[name] = os.stat(path).st_mtime_ns
        return found


def files_below(folder):
    return sorted(
        os.path.relpath(os.path.join(where, name), folder)
        for where, folders, files in os.walk(folder)
        for name in [*files, *folders]
    )


def wrong_modes(folder):
    """Folders, programs and shared libraries are for everybody to use, all other files for everybody to read."""
    wrong = []
    for name in files_below(folder):
        path = os.path.join(folder, name)
        right = 0o755 if os.path.isdir(path) or re.search(r"^bin/|\.so", name) else 0o644
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode != right:
            wrong.append(f"{name}: {mode:o}")
    return "\n".join(wrong)


def check_consumers(results, folder, prefix):
    """Programs that find the library in `prefix` with pkg-config and with CMake."""
    with open(os.path.join(folder, "consumer.c"), "w", encoding="utf-8") as file:
        file.write(CONSUMER)
    environment = dict(os.environ, PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig", LD_LIBRARY_PATH=f"{prefix}/lib")
    script = "gcc consumer.c -o consumer $(pkg-config --cflags --libs gradguard) && ./consumer"
    code, text = run(["sh", "-ec", script], 120, cwd=folder, env=environment)
    version = "" if code else text.strip()
    results.judge("a program builds with pkg-config", text or "failed" if code else "", version)
    if not find_program("cmake"):
        results.fail("a program builds with CMake", "cmake is not installed")
        return
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(CMAKE_CONSUMER.format(version=version))
    script = (
        f"cmake -S . -B build -DCMAKE_PREFIX_PATH={prefix} && cmake --build build"
        " && build/with_gradguard && build/with_static"
    )
    code, text = run(["sh", "-ec", script], 300, cwd=folder, env=environment)
    results.judge("a program builds with CMake", text or "failed" if code else "")


def check_staging(results, checkout, folder):
    """DESTDIR of the environment, as packagers set it; the prefix is one that a mistake may write to."""
    stage, prefix = f"{folder}/stage", f"{folder}/staged"
    code, text = checkout.scons("install", f"prefix={prefix}", DESTDIR=stage)
    package = f"{stage}{prefix}/lib/pkgconfig/gradguard.pc"
    if not code and (os.path.exists(prefix) or not os.path.exists(package)):
        text = f"not there: {package}; in {prefix}: {files_below(prefix)}"
    elif not code:
        with open(package, encoding="utf-8") as file:
            text = "" if f"prefix={prefix}\n" in file.read() else "gradguard.pc does not name the prefix"
    results.judge("DESTDIR of the environment goes before the prefix", text)
    code, text = checkout.scons("uninstall", f"prefix={prefix}", DESTDIR=stage)
    results.judge("uninstall leaves nothing in DESTDIR", text if code else "\n".join(files_below(stage)))


def check_root_in_a_users_checkout(results, folder, options):
    """`scons && sudo scons install`: the checkout stays the user's. Takes another user, so root."""
    nobody = 65534
    source = f"{folder}/checkout"
    build = f"{options[0].split('=')[1]}-{options[1].split('=')[1]}"
    shutil.copytree(".", source, ignore=shutil.ignore_patterns(".*", "build", "__pycache__"))
    for name in (build, "kernels"):
        if os.path.isdir(f"build/{name}"):
            shutil.copytree(f"build/{name}", f"{source}/build/{name}", ignore=shutil.ignore_patterns("tests"))
    for path in glob.glob("build/.sconsign*"):
        shutil.copy2(path, f"{source}/build")
    os.mkdir(f"{folder}/home")
    os.chmod(folder, 0o755)
    for name in ["home", "checkout", *(f"checkout/{name}" for name in files_below(source))]:
        os.chown(f"{folder}/{name}", nobody, nobody, follow_symlinks=False)

    users = Checkout(source, options, user=nobody, group=nobody, extra_groups=[])
    code, text = users.scons(HOME=f"{folder}/home")
    if not code:
        code, text = Checkout(source, options).scons("install", f"prefix={folder}/roots")
    if not code:
        names = [".", *files_below(source)]
        spoilt = [name for name in names if os.lstat(f"{source}/{name}").st_uid != nobody]
        others = [name for name in files_below(f"{folder}/roots") if os.lstat(f"{folder}/roots/{name}").st_uid != 0]
        text = "\n".join([f"in the checkout, not the user's: {name}" for name in spoilt]
                         + [f"installed, not root's: {name}" for name in others])
    results.judge("root installs from a user's checkout and leaves it the user's", text)
    code, text = users.scons("install", f"prefix={folder}/home/.local", HOME=f"{folder}/home")
    if not code:
        code, text = run(["rm", "-rf", f"{source}/build"], 60, **users.process)
    results.judge("the user installs from it and removes the build afterwards", text if code else "")


def check_installation(results, options):
    """Installs to folders of its own, builds against that with pkg-config and with CMake, and removes it. `options` are
    mode= and CC= of the build."""
    folder = tempfile.mkdtemp(prefix="gradguard-install-")
    prefix = f"{folder}/prefix"
    checkout = Checkout(".", options)
    try:
        code, text = checkout.scons()
        before = checkout.products()
        if not code:
            code, text = checkout.scons("install", f"prefix={prefix}", umask="077")
        results.judge("install", text if code else "")
        if code:
            return
        after = checkout.products()
        built = [name for name in after if before.get(name) != after[name]]
        results.judge("scons builds all that is installed", "\n".join(built), f"{len(files_below(prefix))} files")
        results.judge("what is installed is for everybody, whatever the umask", wrong_modes(prefix))
        programs = [f"share/man/man1/{name}.1" for name in os.listdir(f"{prefix}/bin")]
        missing = sorted({*programs} - {*files_below(prefix)})
        results.judge("every program has its man page", "\n".join(missing), " ".join(sorted(programs)))
        check_consumers(results, folder, prefix)

        with open(f"{prefix}/lib/of_others", "w", encoding="utf-8"):
            pass
        code, text = checkout.scons("uninstall", f"prefix={prefix}")
        left = files_below(prefix)
        problem = text if code else "" if left == ["lib", "lib/of_others"] else "\n".join(left)
        results.judge("uninstall leaves what is others', and nothing else", problem)
        check_staging(results, checkout, folder)
        if os.geteuid() == 0:
            check_root_in_a_users_checkout(results, folder, options)
    finally:
        shutil.rmtree(folder)


def check_all(results, build):
    check_headers(results)
    check_symbols(results, build)
    check_static_program(results, build)
