/* Comparison of arrays and numbers. A failure says what was compared, how many values differ, where the first one is,
 * both values with their bits, the case at hand and the seed, and ends the test. */
#ifndef GG_TESTS_SUPPORT_COMPARE_H
#define GG_TESTS_SUPPORT_COMPARE_H

#include "api/gradguard.h"

/* Describes the case at hand; every later failure of this process quotes it. */
__attribute__((format(printf, 1, 2))) void gg_test_case(const char* format, ...);

/* Fails the test, with the case and the seed. */
__attribute__((format(printf, 1, 2), noreturn)) void gg_test_fail(const char* format, ...);

/* Fails unless `condition` holds. */
#define GG_CHECK(condition)                                                                \
  do {                                                                                     \
    if (!(condition)) gg_test_fail("%s:%d: not true: %s", __FILE__, __LINE__, #condition); \
  } while (0)

/* Fails unless the call gives GG_OK, or the status named; quotes the error of the context. */
#define GG_OK_OR_FAIL(context, call) gg_test_status((context), (call), GG_OK, #call, __FILE__, __LINE__)
#define GG_EXPECT_STATUS(context, call, expected) \
  gg_test_status((context), (call), (expected), #call, __FILE__, __LINE__)
void gg_test_status(const gg_context* context, gg_status got, gg_status want, const char* call, const char* file,
                    int line);

/* The same bits; `any_nan` lets every NaN stand for every other. */
void gg_test_same_floats(const char* what, const float* got, const float* want, uint64_t count, bool any_nan);
void gg_test_same_halves(const char* what, const uint16_t* got, const uint16_t* want, uint64_t count, gg_dtype any_nan);
void gg_test_same_bytes(const char* what, const void* got, const void* want, uint64_t bytes);

/* At most `ulps` representable floats apart. */
void gg_test_within_ulps(const char* what, const float* got, const float* want, uint64_t count, uint64_t ulps);

/* |got - want| <= relative * |want| + absolute; two infinities of one sign are equal, NaN equals nothing. */
bool gg_test_is_near(double got, double want, double relative, double absolute);
void gg_test_near(const char* what, double got, double want, double relative, double absolute);
void gg_test_floats_near(const char* what, const float* got, const double* want, uint64_t count, double relative,
                         double absolute);

/* The text contains the part, whatever the case of its letters. */
void gg_test_mentions(const char* text, const char* part);

#endif
