#include "tests/support/trial.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"

/* Bytes before (a multiple of every alignment that matters) and behind each tensor. */
#define CANARY 256

static const gg_role state_role[4] = {GG_PARAMETER, GG_EXP_AVG, GG_EXP_AVG_SQ, GG_MAX_EXP_AVG_SQ};

static void* allocate(uint64_t bytes) {
  void* memory = calloc(bytes ? bytes : 1, 1);
  if (!memory) gg_test_fail("out of memory for %llu bytes", (unsigned long long)bytes);
  return memory;
}

gg_trial* gg_trial_create(const gg_trial_spec* specs, size_t count, gg_update_mode mode, bool amsgrad) {
  gg_trial* trial = allocate(sizeof *trial);
  trial->mode = mode;
  trial->amsgrad = amsgrad;
  trial->count = count;
  trial->entries = allocate(count * sizeof *trial->entries);
  for (size_t i = 0; i < count; i++) {
    gg_trial_entry* entry = &trial->entries[i];
    entry->spec = specs[i];
    if (entry->spec.gradient == 0) entry->spec.gradient = GG_F32;
    entry->step = specs[i].step;
    uint64_t elements = specs[i].elements;
    entry->gradient = allocate(elements * gg_dtype_bytes(entry->spec.gradient));
    for (int s = 0; s < (amsgrad ? 4 : 3); s++) entry->states[s] = allocate(elements * sizeof(float));
    for (uint64_t k = 0; k < elements; k++) entry->states[0][k] = 1.0f;
    if (specs[i].model) entry->copy = allocate(elements * 2);
  }
  return trial;
}

void gg_trial_destroy(gg_trial** trial_pointer) {
  gg_trial* trial = *trial_pointer;
  gg_group_destroy(&trial->group);
  for (size_t i = 0; i < trial->count; i++) {
    gg_trial_entry* entry = &trial->entries[i];
    for (int role = 0; role < GG_ROLES; role++) gg_buffer_destroy(&entry->buffers[role]);
    for (int s = 0; s < 4; s++) free(entry->states[s]);
    free(entry->gradient);
    free(entry->copy);
  }
  free(trial->entries);
  free(trial);
  *trial_pointer = NULL;
}

void gg_trial_fill_gradients(gg_trial* trial, gg_random* random, gg_magnitudes gradients) {
  for (size_t i = 0; i < trial->count; i++) {
    gg_trial_entry* entry = &trial->entries[i];
    gg_random_fill(random, gradients, entry->spec.gradient, entry->gradient, entry->spec.elements);
  }
  if (trial->context) gg_trial_upload_gradients(trial);
}

void gg_trial_fill(gg_trial* trial, gg_random* random, gg_magnitudes gradients) {
  gg_trial_fill_gradients(trial, random, gradients);
  for (size_t i = 0; i < trial->count; i++) {
    gg_trial_entry* entry = &trial->entries[i];
    for (uint64_t k = 0; k < entry->spec.elements; k++) {
      entry->states[0][k] = gg_random_float(random, GG_ORDINARY) * 32;
      entry->states[1][k] = gg_random_float(random, GG_ORDINARY);
      entry->states[2][k] = fabsf(gg_random_float(random, GG_ORDINARY)) * 0.01f;
      if (trial->amsgrad) entry->states[3][k] = fabsf(gg_random_float(random, GG_ORDINARY)) * 0.01f;
    }
  }
}

static gg_dtype dtype_of(const gg_trial_entry* entry, gg_role role) {
  if (role == GG_GRADIENT) return entry->spec.gradient;
  return role == GG_MODEL_COPY ? entry->spec.model : GG_F32;
}

static void* expected_of(const gg_trial_entry* entry, gg_role role) {
  if (role == GG_GRADIENT) return entry->gradient;
  if (role == GG_MODEL_COPY) return entry->copy;
  for (int s = 0; s < 4; s++)
    if (state_role[s] == role) return entry->states[s];
  return NULL;
}

static uint8_t canary_byte(uint64_t index) { return (uint8_t)(0xa5 ^ (index * 29)); }

static uint64_t offset_of(const gg_trial_entry* entry, gg_role role) {
  return CANARY + entry->spec.shift * gg_dtype_bytes(dtype_of(entry, role));
}

static uint64_t bytes_of(const gg_trial_entry* entry, gg_role role) {
  return entry->spec.elements * gg_dtype_bytes(dtype_of(entry, role));
}

static void make_buffer(gg_trial* trial, gg_trial_entry* entry, gg_role role) {
  uint64_t offset = offset_of(entry, role), bytes = bytes_of(entry, role), total = offset + bytes + CANARY;
  uint8_t* image = allocate(total);
  for (uint64_t k = 0; k < offset; k++) image[k] = canary_byte(k);
  for (uint64_t k = offset + bytes; k < total; k++) image[k] = canary_byte(k);
  memcpy(image + offset, expected_of(entry, role), bytes);
  if (trial->allocate) {
    entry->buffers[role] = trial->allocate(trial->context, total, trial->allocate_user);
  } else {
    GG_OK_OR_FAIL(trial->context, gg_buffer_create(trial->context, total, &entry->buffers[role]));
  }
  GG_OK_OR_FAIL(trial->context, gg_buffer_upload(entry->buffers[role], 0, image, total));
  free(image);
}

static bool present(const gg_trial* trial, const gg_trial_entry* entry, gg_role role) {
  if (role == GG_MAX_EXP_AVG_SQ) return trial->amsgrad;
  return role != GG_MODEL_COPY || entry->spec.model != 0;
}

gg_entry* gg_trial_open_entries(gg_trial* trial, gg_context* context) {
  trial->context = context;
  gg_entry* entries = allocate((trial->count ? trial->count : 1) * sizeof *entries);
  for (size_t i = 0; i < trial->count; i++) {
    gg_trial_entry* entry = &trial->entries[i];
    gg_entry made = GG_ENTRY_INIT;
    int64_t shape[1] = {(int64_t)entry->spec.elements};
    made.step = entry->spec.step;
    for (gg_role role = 0; role < GG_ROLES; role++) {
      if (!present(trial, entry, role)) continue;
      make_buffer(trial, entry, role);
      made.tensors[role] =
          gg_tensor_contiguous(entry->buffers[role], offset_of(entry, role), dtype_of(entry, role), 1, shape);
    }
    entries[i] = made;
  }
  return entries;
}

void gg_trial_open(gg_trial* trial, gg_context* context) {
  gg_entry* entries = gg_trial_open_entries(trial, context);
  gg_group_options options = GG_GROUP_OPTIONS_INIT;
  options.mode = trial->mode;
  options.amsgrad = trial->amsgrad;
  GG_OK_OR_FAIL(context, gg_group_create(context, entries, trial->count, &options, &trial->group));
  free(entries);
}

void gg_trial_upload_gradients(gg_trial* trial) {
  for (size_t i = 0; i < trial->count; i++) {
    gg_trial_entry* entry = &trial->entries[i];
    GG_OK_OR_FAIL(trial->context, gg_buffer_upload(entry->buffers[GG_GRADIENT], offset_of(entry, GG_GRADIENT),
                                                   entry->gradient, bytes_of(entry, GG_GRADIENT)));
  }
}

static void expect_update(gg_trial* trial, const gg_adamw_options* options, float factor1, float factor2) {
  for (size_t i = 0; i < trial->count; i++) {
    gg_trial_entry* entry = &trial->entries[i];
    uint64_t elements = entry->spec.elements;
    if (elements == 0) continue;
    gg_model_constants constants = gg_model_constants_of(options, factor1, factor2, entry->step + 1);
    gg_model_update(&constants, entry->gradient, entry->spec.gradient, elements, entry->states[0], entry->states[1],
                    entry->states[2], entry->states[3]);
    if (entry->copy) gg_model_copy(entry->states[0], entry->spec.model, elements, entry->copy);
    entry->step++;
  }
}

void gg_trial_expect(gg_trial* trial, const gg_adamw_options* options, const gg_guard_options* guard,
                     gg_decision* decision) {
  gg_decision made = GG_DECISION_INIT;
  uint64_t elements = 0;
  for (size_t i = 0; i < trial->count; i++) elements += trial->entries[i].spec.elements;
  if (options->skip_update || elements == 0) {
    made.action = GG_SKIPPED;
    made.reason = options->skip_update ? GG_REASON_REQUESTED : GG_REASON_EMPTY;
  } else if (!guard) {
    made.action = GG_APPLIED;
  } else {
    gg_triple* triples = allocate(trial->count * sizeof *triples);
    float inverse = gg_model_inverse(options->gradient_scale);
    for (size_t i = 0; i < trial->count; i++) {
      gg_trial_entry* entry = &trial->entries[i];
      triples[i] = gg_model_reduce(entry->gradient, entry->spec.gradient, entry->spec.elements, inverse);
      entry->triple = triples[i];
    }
    gg_error error = GG_ERROR_INIT;
    if (gg_decide(triples, trial->count, options, guard, &made, &error) != GG_OK)
      gg_test_fail("gg_decide: %s", error.message);
    free(triples);
  }
  if (made.action == GG_APPLIED) expect_update(trial, options, made.factor1, made.factor2);
  if (decision) *decision = made;
}

/* The kinds of one tensor. MOMENT by its definition, with the coefficient that the group has or would have had. */
static uint32_t kinds_of(const gg_triple* triple, const gg_decision* decision, const gg_adamw_options* options,
                         const gg_guard_options* guard) {
  if (decision->nonfinite != GG_KIND_MOMENT) return triple->flags;
  double coefficient = 1;
  if (guard->clip && decision->norm > 0)
    coefficient = fmin(1, guard->max_norm / (decision->norm + guard->clip_epsilon));
  double largest = (double)triple->max_abs * coefficient;
  return (1 - options->beta2) * (largest * largest) > (double)FLT_MAX ? GG_KIND_MOMENT : 0;
}

static void check_per_tensor(const gg_trial* trial, const gg_report* report, const gg_decision* decision,
                             const gg_adamw_options* options, const gg_guard_options* guard) {
  GG_CHECK(report->per_tensor != NULL);
  for (size_t i = 0; i < trial->count; i++) {
    const gg_tensor_report* got = &report->per_tensor[i];
    const gg_triple* want = &trial->entries[i].triple;
    uint32_t kinds = kinds_of(want, decision, options, guard);
    if (got->elements != trial->entries[i].spec.elements || got->nonfinite != kinds ||
        got->max_abs != (double)want->max_abs)
      gg_test_fail("tensor %zu: %llu elements, kinds %u, largest %.9g; expected %llu, %u, %.9g", i,
                   (unsigned long long)got->elements, got->nonfinite, got->max_abs,
                   (unsigned long long)trial->entries[i].spec.elements, kinds, (double)want->max_abs);
    /* The square root in FP64 of an FP32 number tells its bits. */
    gg_test_near("norm of a tensor", got->norm, want->flags ? INFINITY : gg_model_norm(*want), 1e-15, 0);
  }
}

void gg_trial_step(gg_trial* trial, const gg_adamw_options* options, const gg_guard_options* guard) {
  gg_decision want = GG_DECISION_INIT;
  gg_trial_expect(trial, options, guard, &want);
  gg_pending* pending = NULL;
  gg_status expected = want.action == GG_REFUSED ? GG_ERROR_NONFINITE : GG_OK;
  GG_EXPECT_STATUS(trial->context,
                   guard ? gg_guarded_adamw_step(trial->group, options, guard, &pending)
                         : gg_adamw_step(trial->group, options, &pending),
                   expected);
  gg_report report = GG_REPORT_INIT;
  GG_OK_OR_FAIL(trial->context, gg_group_report(trial->group, &report));
  GG_CHECK(report.action == want.action);
  GG_CHECK(report.reason == want.reason);
  GG_CHECK(report.nonfinite == want.nonfinite);
  if (report.measured) {
    gg_test_near("group norm", report.norm, want.norm, 0, 0);
    gg_test_near("largest magnitude", report.max_abs, want.max_abs, 0, 0);
    check_per_tensor(trial, &report, &want, options, guard);
  }
  gg_test_near("clip coefficient", report.clip_coefficient, want.clip_coefficient, 0, 0);
  GG_CHECK((pending != NULL) == (expected == GG_OK));
  if (pending) GG_OK_OR_FAIL(trial->context, gg_pending_commit(&pending));
  GG_CHECK(pending == NULL);
}

void gg_trial_read(const gg_trial* trial, size_t index, gg_role role, void* values) {
  gg_tensor tensor;
  GG_OK_OR_FAIL(trial->context, gg_group_tensor(trial->group, index, role, &tensor));
  GG_OK_OR_FAIL(trial->context,
                gg_buffer_download(tensor.buffer, tensor.offset, values, bytes_of(&trial->entries[index], role)));
}

static void check_canaries(const gg_trial* trial, const gg_trial_entry* entry, gg_role role) {
  uint64_t offset = offset_of(entry, role), behind = offset + bytes_of(entry, role);
  uint8_t before_bytes[CANARY + 64], after_bytes[CANARY];
  gg_buffer* buffer = entry->buffers[role];
  GG_OK_OR_FAIL(trial->context, gg_buffer_download(buffer, 0, before_bytes, offset));
  GG_OK_OR_FAIL(trial->context, gg_buffer_download(buffer, behind, after_bytes, CANARY));
  for (uint64_t k = 0; k < offset; k++)
    if (before_bytes[k] != canary_byte(k))
      gg_test_fail("%s: byte %lld before it was written", gg_role_name(role), (long long)(offset - k));
  for (uint64_t k = 0; k < CANARY; k++)
    if (after_bytes[k] != canary_byte(behind + k))
      gg_test_fail("%s: byte %llu behind it was written", gg_role_name(role), (unsigned long long)k);
}

void gg_trial_check(const gg_trial* trial) {
  for (size_t i = 0; i < trial->count; i++) {
    const gg_trial_entry* entry = &trial->entries[i];
    char what[96];
    for (gg_role role = 0; role < GG_ROLES; role++) {
      if (!present(trial, entry, role)) continue;
      void* values = allocate(bytes_of(entry, role));
      gg_trial_read(trial, i, role, values);
      snprintf(what, sizeof what, "%s of entry %zu (%llu %s, shift %u)", gg_role_name(role), i,
               (unsigned long long)entry->spec.elements, gg_dtype_name(entry->spec.gradient), entry->spec.shift);
      if (role == GG_GRADIENT) {
        gg_test_same_bytes(what, values, entry->gradient, bytes_of(entry, role));
      } else if (role == GG_MODEL_COPY) {
        gg_test_same_halves(what, values, entry->copy, entry->spec.elements, entry->spec.model);
      } else {
        gg_test_same_floats(what, values, expected_of(entry, role), entry->spec.elements, true);
      }
      free(values);
      check_canaries(trial, entry, role);
    }
    uint64_t step = 0;
    GG_OK_OR_FAIL(trial->context, gg_group_step(trial->group, i, &step));
    if (step != entry->step)
      gg_test_fail("entry %zu is at step %llu, expected %llu", i, (unsigned long long)step,
                   (unsigned long long)entry->step);
  }
}
