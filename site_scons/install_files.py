"""What `scons install` puts where, and `scons uninstall` takes away: headers, libraries, package files, the programs and
their man pages. Modes do not depend on the umask, and nothing is written in the checkout."""

import glob
import os
import shutil
import sys

from SCons.Action import Action

import owner

# In these, most folders are everybody's, and stay though they be empty.
SYSTEM_PREFIXES = ("/", "/usr", "/usr/local")
SHARED_FOLDERS = ("", "bin", "include", "lib", "share", "share/man")


class Installation:
    """The files of one prefix: `copied` is destination -> file and mode, `written` destination -> text, `links`
    destination -> what it points to. Destinations are relative to `root`, which is destdir and prefix joined."""

    def __init__(self, destdir, prefix):
        self.prefix = os.path.abspath(prefix)
        self.destdir = os.path.abspath(destdir).rstrip("/") if destdir else ""
        self.root = os.path.normpath(self.destdir + self.prefix)
        self.copied, self.written, self.links = {}, {}, {}

    def copy(self, folder, path, mode=0o644):
        self.copied[f"{folder}/{os.path.basename(path)}"] = (path, mode)

    def add_packages(self, version, static_libraries):
        """The files by which pkg-config and CMake find the library, from packaging/."""
        values = {
            "@PREFIX@": self.prefix,
            "@VERSION@": version,
            "@VERSION_COMPATIBLE@": ".".join(version.split(".")[:2]),
            "@STATIC_LIBS@": " ".join(f"-l{name}" for name in static_libraries),
            "@STATIC_CMAKE_LIBS@": ";".join(static_libraries),
        }
        for path in glob.glob("packaging/*.in"):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for name, value in values.items():
                text = text.replace(name, value)
            folder = "lib/pkgconfig" if path.endswith(".pc.in") else "lib/cmake/gradguard"
            self.written[f"{folder}/{os.path.basename(path)[: -len('.in')]}"] = text

    def destinations(self):
        return sorted([*self.copied, *self.written, *self.links])

    def folders(self):
        """Those that hold the files and those above them, as far as the prefix, or destdir's contents; deepest first."""
        shortest = len(self.destdir) + 1 if self.destdir else len(self.root)
        found = set()
        for name in self.destinations():
            path = os.path.dirname(os.path.join(self.root, name))
            while path not in found and len(path) >= shortest:
                found.add(path)
                path = os.path.dirname(path)
        shared = SHARED_FOLDERS if self.root in SYSTEM_PREFIXES else ()
        found -= {os.path.normpath(os.path.join(self.root, name)) for name in shared}
        return sorted(found, key=len, reverse=True)


def make_folder(path):
    if not os.path.isdir(path):
        make_folder(os.path.dirname(path))
        os.mkdir(path)
        os.chmod(path, 0o755)


def install_files(installation):
    for name in installation.destinations():
        path = os.path.join(installation.root, name)
        print(f"  {path}")
        make_folder(os.path.dirname(path))
        # Not written over: a program that runs, or a library in use, would change under its user.
        if os.path.lexists(path):
            os.remove(path)
        if name in installation.links:
            os.symlink(installation.links[name], path)
            continue
        if name in installation.copied:
            source, mode = installation.copied[name]
            shutil.copyfile(source, path)
        else:
            mode = 0o644
            with open(path, "w", encoding="utf-8") as file:
                file.write(installation.written[name])
        os.chmod(path, mode)


def is_ours(installation, name, path):
    """A link that leads elsewhere is another version's."""
    if name in installation.links:
        return os.path.islink(path) and os.readlink(path) == installation.links[name]
    return os.path.lexists(path)


def uninstall_files(installation):
    found = False
    for name in installation.destinations():
        path = os.path.join(installation.root, name)
        if is_ours(installation, name, path):
            print(f"  {path}")
            os.remove(path)
            found = True
    if not found:
        print("  nothing of gradguard is there")
        return
    for path in installation.folders():
        if os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path):
            print(f"  {path}")
            os.rmdir(path)


def action(work, title, installation):
    """`work` as an action of SCons: says what is done and where and, if it cannot be done, why in one line."""

    def act(target, source, env):
        try:
            with owner.as_root():
                work(installation)
        except OSError as error:
            advice = ": use sudo, or prefix= for a folder of your own" if isinstance(error, PermissionError) else ""
            print(f"{error.filename}: {error.strerror}{advice}", file=sys.stderr)
            return 1
        return 0

    return Action(act, f"{title} {installation.root}")
