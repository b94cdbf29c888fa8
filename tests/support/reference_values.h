/* Values worked out by hand that the reference formula must give. Needs nothing but a C compiler:
 * cc -I. tests/reference_alone.c tests/support/reference_values.c host/reference.c -lm */
#ifndef GG_TESTS_SUPPORT_REFERENCE_VALUES_H
#define GG_TESTS_SUPPORT_REFERENCE_VALUES_H

#include <stdbool.h>
#include <stddef.h>

/* True if it gives all of them; else `fault` says which one first it does not. */
bool gg_reference_holds(char* fault, size_t bytes);

#endif
