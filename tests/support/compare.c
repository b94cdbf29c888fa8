#include "tests/support/compare.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/random.h"

static char current_case[512];

void gg_test_case(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(current_case, sizeof current_case, format, arguments);
  va_end(arguments);
}

void gg_test_fail(const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  cr_assert_fail("%s\n    case: %s\n    GG_TEST_SEED=0x%" PRIx64, text, current_case[0] ? current_case : "(unnamed)",
                 gg_random_seed());
  abort(); /* not reached: cr_assert_fail ends the test */
}

void gg_test_status(const gg_context* context, gg_status got, gg_status want, const char* call, const char* file,
                    int line) {
  if (got == want) return;
  const gg_error* error = context ? gg_context_error(context) : NULL;
  gg_test_fail("%s:%d: %s gave %s, expected %s\n    %s: %s", file, line, call, gg_status_name(got),
               gg_status_name(want), error ? error->function : "-", error ? error->message : "no context");
}

/* Counts the indices where `differs` holds and describes the first. */
typedef struct difference {
  uint64_t count, first;
} difference;

static void note(difference* found, uint64_t index) {
  if (found->count++ == 0) found->first = index;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void fail_floats(const char* what, const difference* found, uint64_t count, float got, float want) {
  gg_test_fail("%s: %" PRIu64 " of %" PRIu64 " values differ, the first at %" PRIu64 ": got %.9g (0x%08" PRIx32
               "), expected %.9g (0x%08" PRIx32 ")",
               what, found->count, count, found->first, (double)got, bits_of(got), (double)want, bits_of(want));
}

void gg_test_same_floats(const char* what, const float* got, const float* want, uint64_t count, bool any_nan) {
  if (memcmp(got, want, count * sizeof *got) == 0) return;
  difference found = {0, 0};
  for (uint64_t i = 0; i < count; i++) {
    if (bits_of(got[i]) == bits_of(want[i])) continue;
    if (!(any_nan && isnan(got[i]) && isnan(want[i]))) note(&found, i);
  }
  if (found.count) fail_floats(what, &found, count, got[found.first], want[found.first]);
}

static bool half_is_nan(uint16_t bits, gg_dtype dtype) {
  uint16_t infinity = dtype == GG_F16 ? 0x7c00 : 0x7f80;
  return dtype != 0 && (bits & 0x7fff) > infinity;
}

void gg_test_same_halves(const char* what, const uint16_t* got, const uint16_t* want, uint64_t count,
                         gg_dtype any_nan) {
  difference found = {0, 0};
  for (uint64_t i = 0; i < count; i++)
    if (got[i] != want[i] && !(half_is_nan(got[i], any_nan) && half_is_nan(want[i], any_nan))) note(&found, i);
  if (found.count)
    gg_test_fail("%s: %" PRIu64 " of %" PRIu64 " values differ, the first at %" PRIu64 ": got 0x%04x, expected 0x%04x",
                 what, found.count, count, found.first, got[found.first], want[found.first]);
}

void gg_test_same_bytes(const char* what, const void* got, const void* want, uint64_t bytes) {
  if (bytes == 0 || memcmp(got, want, bytes) == 0) return;
  const unsigned char *a = got, *b = want;
  difference found = {0, 0};
  for (uint64_t i = 0; i < bytes; i++)
    if (a[i] != b[i]) note(&found, i);
  gg_test_fail("%s: %" PRIu64 " of %" PRIu64 " bytes differ, the first at %" PRIu64 ": got 0x%02x, expected 0x%02x",
               what, found.count, bytes, found.first, a[found.first], b[found.first]);
}

/* Floats in order as integers: neighbours differ by one. */
static int64_t place_of(float value) {
  uint32_t bits = bits_of(value);
  return bits & 0x80000000u ? -(int64_t)(bits & 0x7fffffffu) : (int64_t)bits;
}

void gg_test_within_ulps(const char* what, const float* got, const float* want, uint64_t count, uint64_t ulps) {
  difference found = {0, 0};
  for (uint64_t i = 0; i < count; i++) {
    bool close = !isnan(got[i]) && !isnan(want[i]) && (uint64_t)llabs(place_of(got[i]) - place_of(want[i])) <= ulps;
    if (!close) note(&found, i);
  }
  if (found.count) fail_floats(what, &found, count, got[found.first], want[found.first]);
}

bool gg_test_is_near(double got, double want, double relative, double absolute) {
  if (isinf(got) || isinf(want)) return got == want;
  return fabs(got - want) <= relative * fabs(want) + absolute;
}

void gg_test_near(const char* what, double got, double want, double relative, double absolute) {
  if (!gg_test_is_near(got, want, relative, absolute))
    gg_test_fail("%s: got %.17g, expected %.17g (relative error %.3g, allowed %.3g)", what, got, want,
                 fabs(got - want) / fabs(want), relative);
}

void gg_test_floats_near(const char* what, const float* got, const double* want, uint64_t count, double relative,
                         double absolute) {
  difference found = {0, 0};
  for (uint64_t i = 0; i < count; i++)
    if (!gg_test_is_near((double)got[i], want[i], relative, absolute)) note(&found, i);
  if (found.count)
    gg_test_fail("%s: %" PRIu64 " of %" PRIu64 " values are off, the first at %" PRIu64
                 ": got %.9g, expected %.17g (allowed %.3g relative)",
                 what, found.count, count, found.first, (double)got[found.first], want[found.first], relative);
}

void gg_test_mentions(const char* text, const char* part) {
  if (!strcasestr(text, part)) gg_test_fail("\"%s\" does not mention \"%s\"", text, part);
}
