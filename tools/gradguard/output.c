#include "tools/gradguard/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/gradguard/interrupt.h"

#define STAGING_BYTES (UINT64_C(8) << 20)

static bool refuse_path(gg_problem* problem, gg_exit exit_code, const gg_output* output, const char* why) {
  return gg_refuse(problem, exit_code, "%s: %s", output->asked, why);
}

/* A place that does not exist is a wrong argument; a place that cannot be written is not. */
static gg_exit exit_for(int error) {
  return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG || error == ELOOP ? GG_EXIT_INPUT
                                                                                        : GG_EXIT_FAILURE;
}

/* The directory of `path`, or `path` with its last part replaced: "DIR/name". NULL if memory ran out. */
static char* beside(const char* path, const char* name) {
  char* copy = strdup(path);
  char* result = NULL;
  if (copy != NULL && asprintf(&result, "%s/%s", dirname(copy), name) < 0) result = NULL;
  free(copy);
  return result;
}

/* ---- Prepare ---- */

/* A new file: its directory with links followed, and its own name. */
static char* resolve_new(const char* asked) {
  char* copy = strdup(asked);
  if (copy == NULL) return NULL;
  char* directory = realpath(dirname(copy), NULL);
  free(copy);
  if (directory == NULL) return NULL;
  const char* slash = strrchr(asked, '/');
  char* result = NULL;
  if (asprintf(&result, "%s/%s", directory, slash == NULL ? asked : slash + 1) < 0) result = NULL;
  free(directory);
  return result;
}

static bool resolve(gg_output* output, gg_problem* problem) {
  struct stat status;
  const size_t length = strlen(output->asked);
  if (length == 0) return refuse_path(problem, GG_EXIT_INPUT, output, "an output file needs a name");
  output->existed = stat(output->asked, &status) == 0;
  const int reason = errno;
  if (output->existed) {
    /* Renaming over a device or a pipe would destroy it. */
    if (!S_ISREG(status.st_mode)) {
      return refuse_path(problem, GG_EXIT_INPUT, output, "exists and is not a regular file; it is left alone");
    }
    output->path = realpath(output->asked, NULL);
  } else if (lstat(output->asked, &status) == 0) {
    return refuse_path(problem, GG_EXIT_INPUT, output, "is a symbolic link to a file that does not exist");
  } else if (output->asked[length - 1] == '/') {
    return refuse_path(problem, GG_EXIT_INPUT, output, "names a directory, not a file");
  } else if (reason != ENOENT) { /* it could never be renamed to, which would show only after everything is written */
    return refuse_path(problem, exit_for(reason), output, strerror(reason));
  } else {
    output->path = resolve_new(output->asked);
  }
  if (output->path != NULL) return true;
  return refuse_path(problem, exit_for(errno), output, strerror(errno));
}

/* Created as any program creates a file (0666 and the umask); a file that is replaced hands its mode on. */
static bool create_aside(gg_output* output, size_t slot, gg_problem* problem) {
  for (unsigned attempt = 0; attempt < 100; ++attempt) {
    char name[64];
    snprintf(name, sizeof name, ".gradguard-%ld-%zu-%u.tmp", (long)getpid(), slot, attempt);
    output->aside = beside(output->path, name);
    if (output->aside == NULL) return refuse_path(problem, GG_EXIT_FAILURE, output, "not enough memory");
    output->descriptor = open(output->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (output->descriptor >= 0) break;
    free(output->aside);
    output->aside = NULL;
    if (errno != EEXIST) break;
  }
  if (output->descriptor < 0) {
    return gg_refuse(problem, exit_for(errno), "%s: no file can be created in its directory: %s", output->asked,
                     strerror(errno));
  }
  gg_interrupt_remember(slot, output->aside);
  struct stat status;
  if (output->existed && stat(output->path, &status) == 0 && fchmod(output->descriptor, status.st_mode & 0777) != 0) {
    return refuse_path(problem, GG_EXIT_FAILURE, output, strerror(errno));
  }
  return true;
}

static bool same_file(const gg_output* left, const gg_output* right) {
  struct stat a, b;
  if (strcmp(left->path, right->path) == 0) return true;
  return left->existed && right->existed && stat(left->path, &a) == 0 && stat(right->path, &b) == 0 &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool gg_outputs_prepare(gg_outputs* outputs, const char* const paths[GG_OUTPUT_FILES], gg_problem* problem) {
  memset(outputs, 0, sizeof *outputs);
  for (size_t i = 0; i < GG_OUTPUT_FILES; ++i) {
    outputs->files[i].asked = paths[i];
    outputs->files[i].descriptor = -1;
  }
  for (size_t i = 0; i < GG_OUTPUT_FILES; ++i) {
    if (!resolve(&outputs->files[i], problem)) return false;
    for (size_t j = 0; j < i; ++j) {
      if (!same_file(&outputs->files[i], &outputs->files[j])) continue;
      return gg_refuse(problem, GG_EXIT_INPUT, "%s and %s are the same file", paths[j], paths[i]);
    }
  }
  for (size_t i = 0; i < GG_OUTPUT_FILES; ++i) {
    if (!create_aside(&outputs->files[i], i, problem)) return false;
  }
  return true;
}

/* ---- Write ---- */

static bool write_all(gg_output* output, const unsigned char* bytes, uint64_t count, gg_progress* progress,
                      gg_problem* problem) {
  while (count > 0) {
    const ssize_t written = write(output->descriptor, bytes, count < STAGING_BYTES ? count : STAGING_BYTES);
    if (written < 0) {
      if (errno == EINTR) continue;
      return gg_refuse(problem, GG_EXIT_FAILURE, "%s: cannot be written: %s", output->asked, strerror(errno));
    }
    bytes += written;
    count -= (uint64_t)written;
    gg_progress_add(progress, (uint64_t)written);
  }
  return true;
}

static bool write_device(gg_output* output, gg_context* context, const gg_piece* piece, unsigned char* staging,
                         gg_progress* progress, gg_problem* problem) {
  for (uint64_t done = 0; done < piece->bytes;) {
    const uint64_t left = piece->bytes - done;
    const uint64_t bytes = left < STAGING_BYTES ? left : STAGING_BYTES;
    const gg_status status = gg_buffer_download(piece->buffer, piece->offset + done, staging, bytes);
    if (status != GG_OK) {
      return gg_refuse_error(problem, status, gg_context_error(context), "reading results from the device");
    }
    if (!write_all(output, staging, bytes, progress, problem)) return false;
    done += bytes;
  }
  return true;
}

bool gg_output_write(gg_output* output, gg_context* context, const gg_piece* pieces, size_t count,
                     gg_progress* progress, gg_problem* problem) {
  unsigned char* staging = malloc(STAGING_BYTES);
  if (staging == NULL) return refuse_path(problem, GG_EXIT_FAILURE, output, "not enough memory");
  bool good = true;
  for (size_t i = 0; good && i < count; ++i) {
    good = pieces[i].buffer == NULL ? write_all(output, pieces[i].host, pieces[i].bytes, progress, problem)
                                    : write_device(output, context, &pieces[i], staging, progress, problem);
  }
  free(staging);
  if (!good) return false;
  const int descriptor = output->descriptor;
  output->descriptor = -1;
  if (fsync(descriptor) != 0) {
    const int reason = errno;
    close(descriptor);
    return refuse_path(problem, GG_EXIT_FAILURE, output, strerror(reason));
  }
  /* Some file systems report a full disk here and not before. */
  if (close(descriptor) != 0) return refuse_path(problem, GG_EXIT_FAILURE, output, strerror(errno));
  return true;
}

/* ---- Publish ---- */

/* A second name keeps the old file; where the file system has no hard links it is moved away. */
static bool keep_backup(gg_output* output, size_t slot) {
  char name[64];
  snprintf(name, sizeof name, ".gradguard-%ld-%zu.old", (long)getpid(), slot);
  output->backup = beside(output->path, name);
  if (output->backup == NULL) {
    errno = ENOMEM;
    return false;
  }
  unlink(output->backup);
  if (link(output->path, output->backup) == 0 || rename(output->path, output->backup) == 0) return true;
  free(output->backup);
  output->backup = NULL;
  return false;
}

static void sync_directory(const char* path) {
  char* directory = beside(path, ".");
  const int descriptor = directory == NULL ? -1 : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    (void)fsync(descriptor); /* the rename is done; not every file system can promise more */
    close(descriptor);
  }
  free(directory);
}

bool gg_outputs_publish(gg_outputs* outputs, gg_problem* problem) {
  gg_interrupt_hold();
  for (size_t i = 0; i < GG_OUTPUT_FILES; ++i) {
    gg_output* output = &outputs->files[i];
    if ((output->existed && !keep_backup(output, i)) || rename(output->aside, output->path) != 0) {
      return gg_refuse(problem, GG_EXIT_FAILURE, "%s: cannot be replaced: %s", output->asked, strerror(errno));
    }
    gg_interrupt_forget(i);
    free(output->aside);
    output->aside = NULL;
    output->published = true;
  }
  for (size_t i = 0; i < GG_OUTPUT_FILES; ++i) sync_directory(outputs->files[i].path);
  return true;
}

/* ---- End ---- */

static void release(gg_output* output) {
  if (output->descriptor >= 0) close(output->descriptor);
  free(output->path);
  free(output->aside);
  free(output->backup);
  memset(output, 0, sizeof *output);
  output->descriptor = -1;
}

void gg_outputs_finish(gg_outputs* outputs) {
  for (size_t i = 0; i < GG_OUTPUT_FILES; ++i) {
    if (outputs->files[i].backup != NULL) unlink(outputs->files[i].backup);
    release(&outputs->files[i]);
  }
  gg_interrupt_release();
}

void gg_outputs_abandon(gg_outputs* outputs) {
  gg_interrupt_hold();
  for (size_t i = 0; i < GG_OUTPUT_FILES; ++i) {
    gg_output* output = &outputs->files[i];
    if (output->backup != NULL) {
      /* Where both names are links of one file rename does nothing, hence the unlink. */
      if (rename(output->backup, output->path) == 0) unlink(output->backup);
    } else if (output->published) {
      unlink(output->path);
    }
    if (output->aside != NULL) unlink(output->aside);
    gg_interrupt_forget(i);
    release(output);
  }
  gg_interrupt_release();
}
