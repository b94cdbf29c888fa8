#include "host/policy.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "host/constants.h"
#include "host/environment.h"
#include "host/prefix.h"
#include "host/status.h"

#define VALUE_KINDS (GG_KIND_NAN | GG_KIND_INF | GG_KIND_OVERFLOW)

/* The fields of the first version; later fields follow them. */
#define GUARD_OPTIONS_LEAST (offsetof(gg_guard_options, on_nonfinite) + sizeof(gg_nonfinite_policy))
#define DECISION_LEAST      (offsetof(gg_decision, factor2) + sizeof(float))

/* ---- Options ---- */

/* Callers of the first version do not have this field. */
static gg_moment_policy moment_policy(const gg_guard_options* guard) {
  size_t end = offsetof(gg_guard_options, on_moment_overflow) + sizeof guard->on_moment_overflow;
  return guard->size < end ? GG_MOMENT_APPLY : guard->on_moment_overflow;
}

gg_status gg_check_guard_options(const gg_guard_options* guard, gg_error* error) {
  if (guard == NULL) return GG_OK;
  gg_status status = gg_check_size(guard->size, GUARD_OPTIONS_LEAST, "gg_guard_options", __func__, error);
  if (status != GG_OK) return status;
  if (!isfinite(guard->max_norm) || guard->max_norm < 0)
    return gg_fail(error, GG_ERROR_ARGUMENT, __func__,
                   "max_norm is %g, it must be finite and at least 0: for no clipping set clip to false",
                   guard->max_norm);
  if (!isfinite(guard->clip_epsilon) || guard->clip_epsilon < 0)
    return gg_fail(error, GG_ERROR_ARGUMENT, __func__, "clip_epsilon is %g, it must be finite and at least 0",
                   guard->clip_epsilon);
  if (guard->on_nonfinite != GG_NONFINITE_SKIP && guard->on_nonfinite != GG_NONFINITE_ERROR)
    return gg_fail(error, GG_ERROR_ARGUMENT, __func__,
                   "on_nonfinite is %d, it must be GG_NONFINITE_SKIP (%d) or GG_NONFINITE_ERROR (%d)",
                   (int)guard->on_nonfinite, (int)GG_NONFINITE_SKIP, (int)GG_NONFINITE_ERROR);
  gg_moment_policy policy = moment_policy(guard);
  if (policy != GG_MOMENT_APPLY && policy != GG_MOMENT_SKIP && policy != GG_MOMENT_ERROR)
    return gg_fail(error, GG_ERROR_ARGUMENT, __func__,
                   "on_moment_overflow is %d, it must be GG_MOMENT_APPLY (%d), GG_MOMENT_SKIP (%d) or GG_MOMENT_ERROR "
                   "(%d)",
                   (int)policy, (int)GG_MOMENT_APPLY, (int)GG_MOMENT_SKIP, (int)GG_MOMENT_ERROR);
  return GG_OK;
}

/* ---- Statistics ---- */

/* 2^e, the largest power of two <= max_abs: max_abs with its fraction bits cleared. FP32 subnormals are normal in FP64.
 * 0 for 0. */
static double leading_power(float max_abs) {
  double power = (double)max_abs;
  uint64_t bits;
  memcpy(&bits, &power, sizeof bits);
  bits &= ~(((uint64_t)1 << 52) - 1);
  memcpy(&power, &bits, sizeof bits);
  return power;
}

/* An FP32 square is between 2^-298 and 2^256, so sums of any number of them stay normal numbers of FP64. */
static double sum_of_squares(const gg_triple* triple) {
  double power = leading_power(triple->max_abs);
  return (double)triple->ssq * (power * power);
}

static double norm_of(const gg_triple* triple) { return triple->flags != 0 ? INFINITY : sqrt(sum_of_squares(triple)); }

void gg_report_tensor(const gg_triple* triple, uint64_t elements, gg_tensor_report* report) {
  report->elements = elements;
  report->norm = norm_of(triple);
  report->max_abs = (double)triple->max_abs;
  report->nonfinite = triple->flags;
  report->reserved = 0;
}

/* Both numbers must be finite and not negative, and zero only together. A device that flushes subnormals may lose the
 * square of a subnormal maximum, but nothing else. */
static bool is_consistent(const gg_triple* triple) {
  if (triple->flags & ~VALUE_KINDS) return false;
  if (!isfinite(triple->max_abs) || !isfinite(triple->ssq)) return false;
  if (triple->max_abs < 0 || triple->ssq < 0) return false;
  if (triple->max_abs == 0) return triple->ssq == 0;
  return triple->ssq > 0 || !isnormal(triple->max_abs);
}

static gg_status check_triples(const gg_triple* triples, size_t count, gg_error* error) {
  for (size_t i = 0; i < count; i++) {
    if (is_consistent(&triples[i])) continue;
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_decide",
                   "triple %zu {max_abs %g, ssq %g, flags 0x%x} is not the statistics of any tensor: both numbers must "
                   "be finite, not negative and zero only together, the flags GG_KIND_ bits",
                   i, (double)triples[i].max_abs, (double)triples[i].ssq, triples[i].flags);
  }
  return GG_OK;
}

/* ---- Decision ---- */

/* Magnitudes of floats compare like their bits as integers. Nothing is checked here: with thousands of tensors the
 * device waits for this loop. */
static void merge(const gg_triple* triples, size_t count, gg_decision* decision) {
  double sum = 0;
  uint32_t most = 0, kinds = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t max_abs;
    memcpy(&max_abs, &triples[i].max_abs, sizeof max_abs);
    most = max_abs > most ? max_abs : most;
    kinds |= triples[i].flags;
    sum += sum_of_squares(&triples[i]);
  }
  float largest;
  memcpy(&largest, &most, sizeof largest);
  decision->nonfinite = kinds;
  decision->norm = kinds != 0 ? INFINITY : sqrt(sum);
  decision->max_abs = (double)largest;
}

/* min(1, max_norm / (norm + epsilon)), which is 1 at a norm of 0 whatever the limit, unless that is 0 itself. */
double gg_clip_coefficient(const gg_guard_options* guard, double norm) {
  if (!guard->clip) return 1;
  if (guard->max_norm == 0) return 0;
  if (norm == 0) return 1;
  return fmin(1, guard->max_norm / (norm + guard->clip_epsilon));
}

/* The largest magnitude that is squared. It is monotone in max_abs, so the group overflows if one of its tensors does.
 */
bool gg_overflows_moment(double max_abs, double coefficient, double beta2) {
  double effective = max_abs * coefficient;
  return (1.0 - beta2) * (effective * effective) > (double)FLT_MAX;
}

/* A coefficient that is not a normal FP32 number is split into a normal number and a power of two. The first of the two
 * exponents keeps both factors normal down to 2^-252; the second reaches 2^-275, below which the clipped gradient is
 * close to the smallest subnormal or 0. */
static void split_coefficient(gg_decision* decision) {
  double coefficient = decision->clip_coefficient;
  decision->factor1 = (float)coefficient;
  decision->factor2 = 1;
  if (coefficient == 0 || decision->factor1 >= 0x1p-126f) return;
  int shift = coefficient >= 0x1p-252 ? 126 : 149;
  decision->factor1 = (float)ldexp(coefficient, shift);
  decision->factor2 = ldexpf(1, -shift);
}

static void stop(gg_decision* decision, gg_reason reason, bool is_error) {
  decision->action = is_error ? GG_REFUSED : GG_SKIPPED;
  decision->reason = reason;
}

static void choose(const gg_adamw_options* options, const gg_guard_options* guard, size_t count,
                   gg_decision* decision) {
  if (count == 0) {
    stop(decision, GG_REASON_EMPTY, false);
    return;
  }
  if (decision->nonfinite != 0) {
    stop(decision, GG_REASON_NONFINITE, guard->on_nonfinite == GG_NONFINITE_ERROR);
    return;
  }
  double coefficient = gg_clip_coefficient(guard, decision->norm);
  if (gg_overflows_moment(decision->max_abs, coefficient, options->beta2)) {
    decision->nonfinite = GG_KIND_MOMENT;
    if (moment_policy(guard) != GG_MOMENT_APPLY) {
      stop(decision, GG_REASON_MOMENT_OVERFLOW, moment_policy(guard) == GG_MOMENT_ERROR);
      return;
    }
  }
  decision->action = GG_APPLIED;
  decision->clip_coefficient = coefficient;
  split_coefficient(decision);
}

gg_status gg_merge_measured(const gg_triple* triples, size_t count, gg_decision* merged, gg_error* error) {
  *merged = (gg_decision)GG_DECISION_INIT;
  merge(triples, count, merged);
  if (merged->nonfinite == 0 && !isfinite(merged->norm))
    return gg_fail(error, GG_ERROR_DRIVER, __func__,
                   "the device has given statistics that cannot be: the norm of finite gradients came out as %g. Its "
                   "memory or its driver may be faulty; nothing was updated",
                   merged->norm);
  return GG_OK;
}

gg_status gg_decide_measured(const gg_triple* triples, size_t count, const gg_adamw_options* options,
                             const gg_guard_options* guard, gg_decision* decision, gg_error* error) {
  gg_status status = gg_merge_measured(triples, count, decision, error);
  if (status == GG_OK) choose(options, guard, count, decision);
  return status;
}

static gg_status decide(const gg_triple* triples, size_t count, const gg_adamw_options* options,
                        const gg_guard_options* guard, gg_decision* decision, gg_error* error) {
  static const gg_adamw_options adamw_defaults = GG_ADAMW_OPTIONS_INIT;
  static const gg_guard_options guard_defaults = GG_GUARD_OPTIONS_INIT;
  gg_status status = gg_check_adamw_options(options, error);
  if (status == GG_OK) status = gg_check_guard_options(guard, error);
  if (status != GG_OK) return status;
  if (decision == NULL) return gg_fail(error, GG_ERROR_ARGUMENT, "gg_decide", "decision is NULL");
  status = gg_check_size(decision->size, DECISION_LEAST, "gg_decision", "gg_decide", error);
  if (status != GG_OK) return status;
  if (triples == NULL && count > 0)
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_decide", "triples is NULL, but count is %zu", count);
  status = check_triples(triples, count, error);
  if (status != GG_OK) return status;
  gg_decision made;
  status = gg_decide_measured(triples, count, options != NULL ? options : &adamw_defaults,
                              guard != NULL ? guard : &guard_defaults, &made, error);
  if (status == GG_OK) gg_copy_prefix(decision, &made, sizeof made);
  return status;
}

gg_status gg_decide(const gg_triple* triples, size_t count, const gg_adamw_options* options,
                    const gg_guard_options* guard, gg_decision* decision, gg_error* error) {
  gg_environment saved = gg_environment_enter();
  gg_status status = decide(triples, count, options, guard, decision, error);
  gg_environment_leave(saved);
  return status;
}
