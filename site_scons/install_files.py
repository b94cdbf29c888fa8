"""What `scons install` puts where: headers, libraries, package files, the tool and its man page."""

import os


def install(env, out, version, static, shared, tool, bench, openmp, openmp_library):
    prefix = env["prefix"]
    if not os.path.isabs(prefix):
        prefix = os.path.abspath(prefix)
    root = env["destdir"] + prefix

    values = {
        "@PREFIX@": prefix,
        "@VERSION@": version,
        "@VERSION_COMPATIBLE@": ".".join(version.split(".")[:2]),
        "@STATIC_LIBS@": "-lm -ldl -lpthread" + (f" -l{openmp_library}" if openmp else ""),
        "@STATIC_CMAKE_LIBS@": "m;dl;pthread" + (f";{openmp_library}" if openmp else ""),
    }
    package_env = env.Clone(tools=["textfile"], SUBST_DICT=values)
    pkg_config = package_env.Substfile(f"{out}/packaging/gradguard.pc", "packaging/gradguard.pc.in")
    cmake = [
        package_env.Substfile(f"{out}/packaging/{name}", f"packaging/{name}.in")
        for name in ("gradguard-config.cmake", "gradguard-config-version.cmake")
    ]

    files = [
        env.Install(f"{root}/include/gradguard", env.Glob("api/*.h")),
        env.Install(f"{root}/lib", static),
        env.InstallVersionedLib(f"{root}/lib", shared, SHLIBVERSION=version),
        env.Install(f"{root}/lib/pkgconfig", pkg_config),
        env.Install(f"{root}/lib/cmake/gradguard", cmake),
    ]
    if tool:
        files += [
            env.Install(f"{root}/bin", [tool, bench]),
            env.Install(f"{root}/share/man/man1", env.Glob("tools/gradguard/*.1") + env.Glob("docs/*.1")),
        ]
    return files
