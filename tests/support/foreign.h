/* Steps on memory that a test has allocated itself with the vendor's interface and wrapped. */
#ifndef GG_TESTS_SUPPORT_FOREIGN_H
#define GG_TESTS_SUPPORT_FOREIGN_H

#include "tests/support/trial.h"

/* Guarded steps in place on such memory give the bits of the scalar model. The last report is returned. */
gg_report gg_foreign_in_place(gg_context* context, gg_trial_allocate allocate, void* user);

/* And out of place, where none of it is written. */
void gg_foreign_out_of_place(gg_context* context, gg_trial_allocate allocate, void* user);

#endif
