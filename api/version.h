/* The version is defined only here. The build, the package files and the tool read it. */
#ifndef GRADGUARD_VERSION_H
#define GRADGUARD_VERSION_H

#define GG_VERSION_MAJOR 0
#define GG_VERSION_MINOR 2
#define GG_VERSION_PATCH 0

#endif
