"""Who builds: in a checkout of somebody else's, root works as its owner, so that nothing in it comes to belong to root."""

import contextlib
import os
import pwd


def work_as_owner():
    """Gives up root's rights, but for what as_root() wraps, if the build belongs to another user (`sudo scons install`).
    Compilers and all other programs started from here on have none of them."""
    owner = os.stat("build" if os.path.isdir("build") else ".")
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    try:
        os.setgroups([owner.st_gid])
        os.setresgid(owner.st_gid, owner.st_gid, 0)
        os.setresuid(owner.st_uid, owner.st_uid, 0)
    except OSError:  # a container in which the owner's number means nobody
        return
    try:
        os.environ["HOME"] = pwd.getpwuid(owner.st_uid).pw_dir
    except KeyError:
        os.environ.pop("HOME", None)


@contextlib.contextmanager
def as_root():
    """With the rights that work_as_owner() gave up; without effect if it gave up none."""
    user, group = os.geteuid(), os.getegid()
    lent = os.getresuid()[2] == 0 and user != 0
    if lent:
        os.seteuid(0)
        os.setegid(0)
    try:
        yield
    finally:
        if lent:
            os.setegid(group)
            os.seteuid(user)
