/* Plain steps on one device, as a program of a user's; prints a hash of everything they wrote. tests/checks/guards.py
 * compares what it prints with the whole library and with a build without the guard. */
#include <gradguard/gradguard.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS 5
#define STEPS   3
static const int64_t lengths[TENSORS] = {1, 7, 1000, 70001, 0};
static const gg_dtype gradient_types[TENSORS] = {GG_F32, GG_BF16, GG_F16, GG_F32, GG_F32};

static gg_context* context;
static gg_buffer* buffer;
static uint64_t used;

static void check(gg_status status, const char* doing) {
  if (status == GG_OK) return;
  fprintf(stderr, "%s: %s: %s\n", doing, gg_status_name(status), gg_context_error(context)->message);
  exit(1);
}

/* Every tensor begins at a multiple of 256 bytes of the one buffer. */
static gg_tensor take(gg_dtype dtype, int64_t length) {
  gg_tensor tensor = gg_tensor_contiguous(buffer, used, dtype, 1, &length);
  used += ((uint64_t)length * 4 + 255) / 256 * 256;
  return tensor;
}

/* Finite in all three formats: of the 16 bits of each half, the exponent's highest bit is 0. */
static void fill(unsigned char* bytes, size_t count) {
  uint32_t state = 12345;
  for (size_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(state >> 24) & (i % 2 == 1 ? 0x3f : 0xff);
  }
}

static gg_group* make_group(gg_entry* entries) {
  for (int i = 0; i < TENSORS; i++) {
    entries[i] = (gg_entry)GG_ENTRY_INIT;
    for (int role = GG_PARAMETER; role <= GG_MAX_EXP_AVG_SQ; role++)
      entries[i].tensors[role] = take(role == GG_GRADIENT ? gradient_types[i] : GG_F32, lengths[i]);
    if (i == 2) entries[i].tensors[GG_MODEL_COPY] = take(GG_BF16, lengths[i]);
  }
  gg_group_options options = GG_GROUP_OPTIONS_INIT;
  options.mode = GG_IN_PLACE;
  options.amsgrad = true;
  gg_group* group = NULL;
  check(gg_group_create(context, entries, TENSORS, &options, &group), "making a group");
  return group;
}

/* FNV-1a */
static uint64_t hash(const unsigned char* bytes, size_t count) {
  uint64_t value = 14695981039346656037u;
  for (size_t i = 0; i < count; i++) value = (value ^ bytes[i]) * 1099511628211u;
  return value;
}

int main(int count, char** arguments) {
  gg_error error = GG_ERROR_INIT;
  if (gg_context_create(count > 1 ? arguments[1] : "cpu", NULL, &context, &error) != GG_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  const size_t bytes = (size_t)4 << 20;
  unsigned char* content = malloc(bytes);
  if (content == NULL) return 1;
  fill(content, bytes);
  check(gg_buffer_create(context, bytes, &buffer), "making a buffer");
  check(gg_buffer_upload(buffer, 0, content, bytes), "filling it");
  gg_entry entries[TENSORS];
  gg_group* group = make_group(entries);
  gg_adamw_options options = GG_ADAMW_OPTIONS_INIT;
  for (int step = 0; step < STEPS; step++) {
    gg_pending* pending = NULL;
    check(gg_adamw_step(group, &options, &pending), "a step");
    check(gg_pending_commit(&pending), "its commit");
  }
  uint64_t before = hash(content, bytes);
  check(gg_buffer_download(buffer, 0, content, bytes), "reading back");
  printf("%016llx after %d plain steps\n", (unsigned long long)hash(content, bytes), STEPS);

  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_status guarded = gg_adamw_once(context, entries, TENSORS, true, &options, &guard, NULL, NULL);
  fprintf(stderr, "guarded: %s: %s\n", gg_status_name(guarded), gg_context_error(context)->message);
  gg_group_destroy(&group);
  gg_buffer_destroy(&buffer);
  gg_context_destroy(&context);
  int unchanged = hash(content, bytes) == before;
  free(content);
  return unchanged;
}
