/* The cases of tests/data/cases.json: inputs on which guarded steps have gone wrong, with exact results in FP64. */
#ifndef GG_TESTS_SUPPORT_CASES_H
#define GG_TESTS_SUPPORT_CASES_H

#include <jansson.h>

#include "tests/support/trial.h"

/* All cases, an array; json_decref it. GG_TEST_DATA names the folder; else it is tests/data of the source tree. */
json_t* gg_cases_load(void);

/* A member as a string or number; "nan", "inf" and "-inf" are numbers, and so is an absent one: `otherwise`. */
const char* gg_case_text(const json_t* object, const char* key);
double gg_case_number(const json_t* object, const char* key, double otherwise);

/* The options of a case. `guard->clip` is set if it has a limit. */
void gg_case_options(const json_t* one, gg_adamw_options* adamw, gg_guard_options* guard, bool* amsgrad);

/* Its tensors, not yet on a device. */
gg_trial* gg_case_trial(const json_t* one, gg_update_mode mode);

/* A list of "nan", "inf" and "overflow" as GG_KIND_ bits. */
uint32_t gg_case_kinds(const json_t* list);

#endif
