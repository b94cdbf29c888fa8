/* What a user is told, and what the CUDA backend does, on machines where something is missing, old or wrong: against a
 * fake driver (tests/support/fake_cuda.h), so no GPU is needed. Every message has the cure in it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/support/compare.h"

#ifndef GG_BACKEND_CUDA

Test(cuda_machine, this_build_has_no_cuda_backend, .timeout = 10) { cr_skip("built without backends=cuda"); }

#else

#include "backends/cuda/table.h"
#include "tests/support/fake_cuda.h"

/* Every word of a list that ends with NULL. */
static void mentions_all(const char* text, const char* const* words) {
  for (; *words; words++) gg_test_mentions(text, *words);
}
#define MENTIONS(text, ...) mentions_all((text), (const char* const[]){__VA_ARGS__, NULL})

static void check_end(void) {
  if (*gg_fake_cuda_left()) gg_test_fail("left behind: %s", gg_fake_cuda_left());
  if (*gg_fake_cuda_violation()) gg_test_fail("misuse of the driver: %s", gg_fake_cuda_violation());
  GG_CHECK(gg_fake_cuda_caller_is_current());
  gg_fake_cuda_check_heap();
}

/* Opens on the machine as it is set; the device, or NULL with the error. */
static gg_device* try_open(const gg_cuda_platform* platform, const gg_open_request* request, gg_error* error) {
  gg_device* device = NULL;
  gg_fake_cuda_caller();
  *error = (gg_error)GG_ERROR_INIT;
  gg_status status = gg_cuda_open_with(platform, request, &device, error);
  GG_CHECK((device != NULL) == (status == GG_OK) && error->status == status);
  if (!device) check_end();
  return device;
}

static gg_error refused(const gg_cuda_platform* platform, const char* id, const char* variant) {
  gg_error error;
  gg_open_request request = {.id = id, .kernel = variant};
  gg_device* device = try_open(platform, &request, &error);
  if (device) gg_test_fail("%s opened on variant %s", id, device->kernel);
  return error;
}

/* ---- Nothing there ---- */

/* No library can be opened by a process that may open no file. */
static struct rlimit allow_no_file(void) {
  struct rlimit before, none;
  GG_CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
  none = before;
  none.rlim_cur = 0;
  GG_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
  return before;
}

Test(cuda_machine, no_driver, .timeout = 10) {
  gg_cuda_driver driver;
  gg_error error = GG_ERROR_INIT;
  struct rlimit before = allow_no_file();
  gg_status status = gg_cuda_driver_open(&driver, &error);
  GG_CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
  GG_CHECK(status == GG_ERROR_NO_DRIVER && error.status == status);
  MENTIONS(error.message, "libcuda.so.1", "Install the NVIDIA driver", "container", "--gpus all");
}

Test(cuda_machine, no_nvrtc, .timeout = 10) {
  gg_nvrtc nvrtc;
  gg_error error = GG_ERROR_INIT;
  struct rlimit before = allow_no_file();
  gg_status status = gg_nvrtc_open(&nvrtc, 13000, &error);
  GG_CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
  GG_CHECK(status == GG_ERROR_BUILD && error.status == status);
  MENTIONS(error.message, "NVRTC", "libnvrtc.so.12", "Install the CUDA toolkit", "LD_LIBRARY_PATH", "cubin");
}

Test(cuda_machine, no_device, .timeout = 10) {
  gg_device_info info;
  for (int listed = 0; listed < 2; listed++) { /* drivers say it in two ways */
    gg_cuda_platform platform = gg_fake_cuda_start();
    if (listed)
      gg_fake_cuda.devices = 0;
    else
      gg_fake_cuda_fail(1, GG_CUDA_ERROR_NO_DEVICE, false);
    gg_error error = refused(&platform, "cuda:0", NULL);
    GG_CHECK(error.status == GG_ERROR_NO_DEVICE);
    MENTIONS(error.message, "sees no GPU", "nvidia-smi", "CUDA_VISIBLE_DEVICES");
    if (!listed) gg_fake_cuda_fail(1, GG_CUDA_ERROR_NO_DEVICE, false);
    GG_CHECK(gg_cuda_probe_with(&platform, &info, 1) == 1 && !info.available);
    GG_CHECK(strcmp(info.backend, "cuda") == 0 && info.size == sizeof info);
    MENTIONS(info.reason, "sees no GPU", "CUDA_VISIBLE_DEVICES");
    GG_CHECK(gg_cuda_probe_with(&platform, NULL, 0) == (size_t)(listed ? 1 : 2));
  }
}

Test(cuda_machine, a_driver_that_does_not_start, .timeout = 10) {
  static const struct {
    unsigned code;
    gg_status status;
    const char* cure;
  } cases[] = {
      {GG_CUDA_ERROR_STUB_LIBRARY, GG_ERROR_NO_DRIVER, "stubs folder off LD_LIBRARY_PATH"},
      {GG_CUDA_ERROR_SYSTEM_NOT_READY, GG_ERROR_NO_DRIVER, "nvidia-fabricmanager"},
      {GG_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, GG_ERROR_NO_DRIVER, "reboot"},
      {GG_CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, GG_ERROR_NO_DRIVER, "cuda-compat"},
      {GG_CUDA_ERROR_OPERATING_SYSTEM, GG_ERROR_NO_DRIVER, "/dev/nvidia"},
      {GG_CUDA_ERROR_UNKNOWN, GG_ERROR_NO_DRIVER, "dmesg"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gg_cuda_platform platform = gg_fake_cuda_start();
    gg_fake_cuda_fail(1, cases[i].code, false);
    gg_error error = refused(&platform, "cuda:0", NULL);
    gg_test_case("code %u: %s", cases[i].code, error.message);
    GG_CHECK(error.status == cases[i].status && error.native_code == cases[i].code);
    MENTIONS(error.message, "cuInit", cases[i].cure);
  }
}

Test(cuda_machine, wrong_ids_are_told_what_there_is, .timeout = 10) {
  gg_cuda_platform platform = gg_fake_cuda_start();
  gg_error error = refused(&platform, "cuda:2", NULL);
  GG_CHECK(error.status == GG_ERROR_NO_DEVICE);
  MENTIONS(error.message, "cuda:2", "cuda:0 to cuda:1", "CUDA_VISIBLE_DEVICES");
  static const char* const wrong[] = {"cuda:", "cuda:x", "cuda:1x", "cuda:-1", "opencl:0"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    error = refused(&platform, wrong[i], NULL);
    GG_CHECK(error.status == GG_ERROR_ARGUMENT);
    MENTIONS(error.message, wrong[i], "cuda:N");
  }
}

Test(cuda_machine, prohibited_compute_is_listed_with_the_cure, .timeout = 10) {
  gg_cuda_platform platform = gg_fake_cuda_start();
  gg_fake_cuda.compute_mode = GG_CU_COMPUTEMODE_PROHIBITED;
  gg_device_info infos[2];
  GG_CHECK(gg_cuda_probe_with(&platform, infos, 2) == 2 && !infos[0].available && !infos[1].available);
  MENTIONS(infos[0].reason, "prohibited", "nvidia-smi -c DEFAULT");
}

/* ---- Kernels that do not fit ---- */

static gg_error refused_on(const char* variant, gg_cu_result code) {
  gg_cuda_platform platform = gg_fake_cuda_start();
  gg_fake_cuda.fatbin = gg_fake_cuda.ptx = gg_fake_cuda.compiled = code;
  gg_error error = refused(&platform, "cuda:0", variant);
  GG_CHECK(error.native_code == (int64_t)code && gg_fake_cuda_calls("cuModuleLoadDataEx") == 1);
  GG_CHECK(error.status == GG_ERROR_BUILD);
  MENTIONS(error.message, "cuModuleLoadDataEx", error.native_name, "compute capability 9.0", "CUDA 13.0",
           "what the assembler says");
  return error;
}

Test(cuda_machine, a_driver_older_than_the_ptx, .timeout = 10) {
  gg_error error = refused_on("ptx", GG_CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  MENTIONS(error.message, "newer CUDA toolkit", "update the NVIDIA driver", "variant cubin", "variant nvrtc",
           "GRADGUARD_CUDA_KERNELS");
}

Test(cuda_machine, no_machine_code_for_the_architecture, .timeout = 10) {
  gg_error error = refused_on("cubin", GG_CUDA_ERROR_NO_BINARY_FOR_GPU);
  MENTIONS(error.message, "no code for this GPU", "ptx or nvrtc", "gencode=");
}

Test(cuda_machine, no_compiler_in_the_driver, .timeout = 10) {
  gg_error error = refused_on("ptx", GG_CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  MENTIONS(error.message, "libnvidia-ptxjitcompiler.so.1", "cubin or nvrtc");
  error = refused_on("ptx", GG_CUDA_ERROR_JIT_COMPILATION_DISABLED);
  MENTIONS(error.message, "CUDA_DISABLE_PTX_JIT", "cubin");
}

Test(cuda_machine, a_build_without_nvcc_says_so, .timeout = 10) {
  gg_cuda_platform platform = gg_fake_cuda_start();
  platform.fatbin = NULL;
  platform.ptx = NULL;
  static const char* const variants[] = {"cubin", "ptx"};
  for (int i = 0; i < 2; i++) {
    gg_error error = refused(&platform, "cuda:0", variants[i]);
    GG_CHECK(error.status == GG_ERROR_UNSUPPORTED);
    MENTIONS(error.message, variants[i], "nvcc", "build it with the CUDA toolkit", "\"nvrtc\"");
  }
  gg_device_info info;
  GG_CHECK(gg_cuda_probe_with(&platform, &info, 1) == 2 && info.available && strcmp(info.kernels, "nvrtc") == 0);
  gg_fake_cuda.nvrtc_absent = true;
  gg_cuda_probe_with(&platform, &info, 1);
  GG_CHECK(!info.available && !*info.kernels);
  MENTIONS(info.reason, "no embedded kernels", "NVRTC", "build with nvcc");
}

Test(cuda_machine, an_unknown_variant_is_told_the_three, .timeout = 10) {
  gg_cuda_platform platform = gg_fake_cuda_start();
  gg_error error = refused(&platform, "cuda:0", "sass");
  GG_CHECK(error.status == GG_ERROR_ARGUMENT);
  MENTIONS(error.message, "\"sass\"", "\"cubin\", \"ptx\" or \"nvrtc\"");
}

Test(cuda_machine, run_time_compilation_fits_the_device, .timeout = 10) {
  static const struct {
    int capability;
    const char* target; /* NULL: refused */
  } cases[] = {{90, "=sm_90 "}, {75, "=sm_75 "}, {86, "=compute_75 "}, {103, "=compute_100 "}, {70, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gg_cuda_platform platform = gg_fake_cuda_start();
    gg_fake_cuda.capability = cases[i].capability;
    gg_test_case("compute capability %d", cases[i].capability);
    gg_error error;
    gg_open_request request = {.id = "cuda:1", .kernel = "nvrtc"};
    gg_device* device = try_open(&platform, &request, &error);
    GG_CHECK((device != NULL) == (cases[i].target != NULL));
    if (!device) {
      GG_CHECK(error.status == GG_ERROR_BUILD);
      MENTIONS(error.message, "NVRTC 13.0", "7.0", "older CUDA toolkit");
      continue;
    }
    /* The arithmetic of docs/numerics.md. */
    MENTIONS(gg_fake_cuda_compiled_with(), cases[i].target, "--fmad=false", "--prec-div=true", "--prec-sqrt=true",
             "--ftz=false");
    gg_cuda_close(device);
    check_end();
  }
}

Test(cuda_machine, the_compiler_is_quoted, .timeout = 10) {
  gg_error error = GG_ERROR_INIT;
  for (unsigned nth = 1; strcmp(error.function, "nvrtcCompileProgram") != 0; nth++) {
    GG_CHECK(nth < 100);
    gg_cuda_platform platform = gg_fake_cuda_start();
    gg_fake_cuda_fail(nth, 6, false);
    error = refused(&platform, "cuda:0", "nvrtc");
  }
  GG_CHECK(error.status == GG_ERROR_BUILD && error.native_code == 6);
  MENTIONS(error.message, "NVRTC_ERROR_COMPILATION", "as the compiler puts it");
}

/* ---- The best variant ---- */

typedef struct lines {
  int count, level[4];
  char text[4][1200];
} lines;

static void keep_line(void* user, int level, const char* message) {
  lines* kept = user;
  GG_CHECK(kept->count < 4);
  kept->level[kept->count] = level;
  snprintf(kept->text[kept->count++], sizeof kept->text[0], "%s", message);
}

static const char* variant_of(const gg_cuda_platform* platform, lines* kept) {
  gg_error error;
  *kept = (lines){.count = 0};
  gg_open_request request = {.id = "cuda:0", .log = keep_line, .log_user = kept};
  gg_device* device = try_open(platform, &request, &error);
  if (!device) gg_test_fail("%s", error.message);
  const char* variant = device->kernel;
  gg_cuda_close(device);
  check_end();
  return variant;
}

Test(cuda_machine, a_variant_gives_way_to_the_next_unless_it_was_named, .timeout = 10) {
  lines* kept = calloc(1, sizeof *kept);
  GG_CHECK(kept != NULL);
  gg_cuda_platform platform = gg_fake_cuda_start();
  GG_CHECK(strcmp(variant_of(&platform, kept), "cubin") == 0 && kept->count == 0);
  GG_CHECK(gg_fake_cuda_loaded() == platform.fatbin);

  platform = gg_fake_cuda_start();
  gg_fake_cuda.fatbin = GG_CUDA_ERROR_NO_BINARY_FOR_GPU;
  GG_CHECK(strcmp(variant_of(&platform, kept), "ptx") == 0 && gg_fake_cuda_loaded() == platform.ptx);
  GG_CHECK(kept->count == 1 && kept->level[0] == 1);
  MENTIONS(kept->text[0], "cubin is not usable", "CUDA_ERROR_NO_BINARY_FOR_GPU");

  gg_fake_cuda.ptx = GG_CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  GG_CHECK(strcmp(variant_of(&platform, kept), "nvrtc") == 0 && kept->count == 2);
  MENTIONS(kept->text[1], "ptx is not usable", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");

  /* A build without images is no failure to warn of. */
  platform.fatbin = NULL;
  platform.ptx = NULL;
  GG_CHECK(strcmp(variant_of(&platform, kept), "nvrtc") == 0 && kept->count == 2);
  GG_CHECK(kept->level[0] == 0 && kept->level[1] == 0);

  platform = gg_fake_cuda_start();
  gg_fake_cuda.fatbin = GG_CUDA_ERROR_NO_BINARY_FOR_GPU;
  gg_error error = refused(&platform, "cuda:0", "cubin");
  GG_CHECK(error.status == GG_ERROR_BUILD && gg_fake_cuda_calls("cuModuleLoadDataEx") == 1);
  free(kept);
}

Test(cuda_machine, no_variant_at_all_says_why_for_each, .timeout = 10) {
  gg_cuda_platform platform = gg_fake_cuda_start();
  gg_fake_cuda.fatbin = GG_CUDA_ERROR_NO_BINARY_FOR_GPU;
  gg_fake_cuda.ptx = GG_CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  gg_fake_cuda.nvrtc_absent = true;
  gg_error error = refused(&platform, "cuda:0", NULL);
  GG_CHECK(error.status == GG_ERROR_BUILD);
  MENTIONS(error.message, "no kernel variant works on cuda:0", "cubin: ", "CUDA_ERROR_NO_BINARY_FOR_GPU",
           "ptx: ", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "nvrtc: the fake machine has no NVRTC");
}

Test(cuda_machine, a_shortage_or_a_fault_is_no_reason_for_another_variant, .timeout = 10) {
  static const gg_cu_result codes[] = {GG_CUDA_ERROR_OUT_OF_MEMORY, GG_CUDA_ERROR_ILLEGAL_ADDRESS};
  for (int i = 0; i < 2; i++) {
    gg_cuda_platform platform = gg_fake_cuda_start();
    gg_fake_cuda.fatbin = codes[i];
    gg_error error = refused(&platform, "cuda:0", NULL);
    GG_CHECK(error.status == (i ? GG_ERROR_DEVICE_LOST : GG_ERROR_NO_MEMORY));
    GG_CHECK(error.native_code == (int64_t)codes[i] && gg_fake_cuda_calls("cuModuleLoadDataEx") == 1);
  }
}

/* ---- Memory of the caller ---- */

Test(cuda_machine, foreign_pointers_are_refused_with_the_reason, .timeout = 10) {
  enum { HOST = GG_CU_MEMORYTYPE_HOST, DEVICE = GG_CU_MEMORYTYPE_DEVICE };
  const gg_cu_pointer at = (gg_cu_pointer)1 << 40;
  gg_cu_context other = (gg_cu_context)(void*)&keep_line;
  const struct {
    gg_fake_cuda_range range;
    gg_status status;
    const char* reason;
  } cases[] = {
      {{at, 64, NULL, DEVICE, 0, 0, at}, GG_OK, NULL},
      {{at, 0, NULL, DEVICE, 0, 0, at}, GG_OK, NULL},       /* of a size that the driver does not tell */
      {{at, 64, NULL, HOST, 0, 0, at + 4096}, GG_OK, NULL}, /* mapped host memory */
      {{at, 64, other, DEVICE, 1, 1, at}, GG_OK, NULL},     /* managed memory belongs everywhere */
      {{at, 64, NULL, 0, 0, -2, 0}, GG_ERROR_ARGUMENT, "not memory that CUDA allocated"},
      {{at, 64, NULL, DEVICE, 0, 1, at}, GG_ERROR_ARGUMENT, "memory of CUDA device 1"},
      {{at, 64, other, DEVICE, 0, 0, at}, GG_ERROR_ARGUMENT, "gg_cuda_context_create"},
      {{at, 64, NULL, HOST, 0, 0, 0}, GG_ERROR_ARGUMENT, "CU_MEMHOSTALLOC_DEVICEMAP"},
      {{at, 60, NULL, DEVICE, 0, 0, at}, GG_ERROR_ARGUMENT, "ends 60 bytes after it, 64 bytes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gg_cuda_platform platform = gg_fake_cuda_start();
    gg_error error;
    gg_open_request request = {.id = "cuda:0"};
    gg_device* device = try_open(&platform, &request, &error);
    GG_CHECK(device != NULL);
    gg_fake_cuda_know(cases[i].range);
    gg_test_case("pointer %zu", i);
    gg_memory* memory = NULL;
    GG_CHECK(gg_cuda_wrap(device, GG_HANDLE_CUDA, at, 64, &memory, &error) == cases[i].status);
    GG_CHECK((memory != NULL) == (cases[i].status == GG_OK));
    if (cases[i].reason) gg_test_mentions(error.message, cases[i].reason);
    if (memory) GG_CHECK(gg_cuda_native_address(memory) == cases[i].range.address && memory->wrapped);
    gg_cuda_release(device, memory);
    gg_cuda_close(device);
    check_end();
  }
}

Test(cuda_machine, tables_that_cannot_be_are_refused, .timeout = 10) {
  gg_cuda_platform platform = gg_fake_cuda_start();
  gg_error error;
  gg_open_request request = {.id = "cuda:0"};
  gg_device* device = try_open(&platform, &request, &error);
  GG_CHECK(device != NULL);
  gg_memory* memory = NULL;
  GG_CHECK(gg_cuda_alloc(device, 4096, &memory, &error) == GG_OK);
  gg_row rows[2] = {{.elements = 8, .gradient_dtype = GG_F32, .gradient = {memory, 0}},
                    {.elements = 8, .gradient_dtype = GG_F32, .gradient = {memory, 64}}};
  gg_table* table = NULL;
  GG_CHECK(gg_cuda_table_make(device, rows, 0, false, false, &table, &error) == GG_ERROR_ARGUMENT && !table);
  rows[1].gradient.offset = 66;
  GG_CHECK(gg_cuda_table_make(device, rows, 2, false, false, &table, &error) == GG_ERROR_ARGUMENT && !table);
  gg_test_mentions(error.message, "wrap memory that is aligned for its dtype");
  rows[1].gradient.offset = 64;
  rows[1].elements = 1 << 20;
  GG_CHECK(gg_cuda_table_make(device, rows, 2, false, false, &table, &error) == GG_ERROR_ARGUMENT && !table);
  gg_test_mentions(error.message, "largest first");
  rows[0].elements = rows[1].elements = (uint64_t)1 << 44;
  GG_CHECK(gg_cuda_table_make(device, rows, 2, false, true, &table, &error) == GG_ERROR_UNSUPPORTED && !table);
  gg_test_mentions(error.message, "split it into several groups");
  gg_cuda_release(device, memory);
  gg_cuda_close(device);
  check_end();
}

#endif
