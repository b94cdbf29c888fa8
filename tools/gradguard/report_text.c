#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gradguard/report.h"

/* People read only the start of a long list; programs use --report json. */
#define FLAGGED_SHOWN 50
#define FINE_SHOWN    20

static void print_head(FILE* out, const gg_result* result) {
  const gg_report* report = result->report;
  gg_quoted name;
  fprintf(out, "gradients     %s: %zu tensor%s, %llu element%s\n", result->gradients_path, result->count,
          result->count == 1 ? "" : "s", (unsigned long long)report->elements, report->elements == 1 ? "" : "s");
  fprintf(out, "grad scale    %.9g\n", report->gradient_scale);
  fprintf(out, "device        %s, %s, kernel %s\n", result->device->id, gg_quote(&name, result->device->name),
          result->kernel);
}

static void print_measurement(FILE* out, const gg_report* report) {
  if (!report->measured) return;
  fprintf(out, "norm          %.9g%s\n", report->norm, isinf(report->norm) ? " (non-finite values, see below)" : "");
  fprintf(out, "max |g|       %.9g%s\n", report->max_abs, isinf(report->norm) ? " (of the finite values)" : "");
}

/* "1025 = [8, 1]": the place in the file's own terms, and the one that a person indexes with. */
static void print_place(FILE* out, const gg_stored_tensor* tensor, uint64_t index) {
  fprintf(out, "%llu", (unsigned long long)index);
  if (tensor->rank < 2) return;
  uint64_t after = tensor->elements; /* elements of one step along the dimension */
  fputs(" = [", out);
  for (size_t i = 0; i < tensor->rank; ++i) {
    after /= (uint64_t)tensor->shape[i];
    fprintf(out, "%s%llu", i == 0 ? "" : ", ", (unsigned long long)(index / after));
    index %= after;
  }
  fputc(']', out);
}

/* inspect: a line for each kind, with how many and where. */
static void print_census(FILE* out, const gg_stored_tensor* gradient, const gg_nonfinite_census* census) {
  for (size_t i = 0; i < GG_VALUE_KINDS; ++i) {
    const uint64_t count = gg_census_count(census, gg_kind_names[i].kind);
    if (count == 0) continue;
    fprintf(out, "      %-8s  %llu of %llu, first at ", gg_kind_names[i].name, (unsigned long long)count,
            (unsigned long long)gradient->elements);
    print_place(out, gradient, gg_census_first(census, gg_kind_names[i].kind));
    fputc('\n', out);
  }
}

static void print_flagged(FILE* out, const gg_result* result, size_t entry) {
  const gg_stored_tensor* gradient = result->gradients[entry];
  gg_quoted name;
  gg_shape_text shape;
  fprintf(out, "  %s  %s %s", gg_quote(&name, gradient->name), gradient->dtype, gg_stored_shape_text(&shape, gradient));
  if (result->census != NULL) {
    fprintf(out, ", max |g| %.9g of its finite values\n", result->report->per_tensor[entry].max_abs);
    print_census(out, gradient, &result->census[entry]);
    return;
  }
  const char* before = ": ";
  for (size_t i = 0; i < GG_KIND_NAMES; ++i) {
    if (!(result->report->per_tensor[entry].nonfinite & gg_kind_names[i].kind)) continue;
    fprintf(out, "%s%s", before, gg_kind_names[i].name);
    before = ", ";
  }
  fputc('\n', out);
}

/* What each kind says about where it came from. */
static void print_meaning(FILE* out, uint32_t bits) {
  if (bits & GG_KIND_INF) {
    fputs(
        "  inf       was already infinite when it was stored: the backward pass overflowed. F16 ends at 65504, so a\n"
        "            lower loss scale is the usual cure.\n",
        out);
  }
  if (bits & GG_KIND_NAN) {
    fputs(
        "  nan       is the result of an undefined operation (inf - inf, 0 * inf, 0 / 0). Where inf stands beside it,\n"
        "            the inf is usually the origin.\n",
        out);
  }
  if (bits & GG_KIND_OVERFLOW) {
    fputs(
        "  overflow  is finite as stored, but leaves the range of FP32 when it is divided by the grad scale: check\n"
        "            --grad-scale.\n",
        out);
  }
  if (bits & GG_KIND_MOMENT) {
    fputs(
        "  moment    is a finite gradient whose square is too large for exp_avg_sq in FP32. Once that is infinite, "
        "its\n"
        "            parameter never moves again. Check --grad-scale (a loss scale that is still in the gradients), "
        "or\n"
        "            clip with --max-norm; --on-moment-overflow skip does not apply such a step.\n",
        out);
  }
}

static size_t print_all_flagged(FILE* out, const gg_result* result) {
  size_t flagged = 0;
  if (result->report->per_tensor == NULL) return 0;
  for (size_t i = 0; i < result->count; ++i) flagged += result->report->per_tensor[i].nonfinite != 0;
  if (flagged == 0) return 0;
  const bool one = flagged == 1;
  fprintf(out, "\n%zu of %zu tensors %s%s, in the order of the file:\n", flagged, result->count, one ? "holds" : "hold",
          result->report->nonfinite == GG_KIND_MOMENT ? " gradients too large for the second moment"
                                                      : " non-finite values");
  size_t shown = 0;
  for (size_t i = 0; i < result->count && shown < FLAGGED_SHOWN; ++i) {
    if (result->report->per_tensor[i].nonfinite == 0) continue;
    print_flagged(out, result, i);
    ++shown;
  }
  if (flagged > shown) fprintf(out, "  ... and %zu more (--report json lists all)\n", flagged - shown);
  fputc('\n', out);
  print_meaning(out, result->report->nonfinite);
  return flagged;
}

/* ---- The fine tensors, largest norm first ---- */

typedef struct ranked {
  double norm;
  size_t entry;
} ranked;

static int compare_ranked(const void* left, const void* right) {
  const ranked* a = left;
  const ranked* b = right;
  if (a->norm != b->norm) return a->norm > b->norm ? -1 : 1;
  return a->entry < b->entry ? -1 : 1;
}

static bool print_fine(FILE* out, const gg_result* result) {
  const gg_tensor_report* measured = result->report->per_tensor;
  if (measured == NULL) return true;
  ranked* order = malloc((result->count + 1) * sizeof *order);
  if (order == NULL) return false;
  size_t fine = 0;
  for (size_t i = 0; i < result->count; ++i) {
    if (measured[i].nonfinite == 0) order[fine++] = (ranked){measured[i].norm, i};
  }
  qsort(order, fine, sizeof *order, compare_ranked);
  if (fine != 0) {
    fprintf(out, "\n%zu tensor%s of finite values only, largest norm first:\n", fine, fine == 1 ? "" : "s");
    fprintf(out, "  %15s %15s %14s  %s\n", "norm", "max |g|", "elements", "name");
  }
  for (size_t i = 0; i < fine && i < FINE_SHOWN; ++i) {
    const size_t entry = order[i].entry;
    gg_quoted name;
    fprintf(out, "  %15.9g %15.9g %14llu  %s\n", measured[entry].norm, measured[entry].max_abs,
            (unsigned long long)measured[entry].elements, gg_quote(&name, result->gradients[entry]->name));
  }
  if (fine > FINE_SHOWN) fprintf(out, "  ... and %zu more (--report json lists all)\n", fine - FINE_SHOWN);
  free(order);
  return true;
}

/* ---- Whole reports ---- */

static char* finish(FILE* out, char** text, bool good) {
  const bool written = ferror(out) == 0;
  if (fclose(out) == 0 && written && good) return *text;
  free(*text);
  return NULL;
}

char* gg_inspect_text(const gg_result* result) {
  char* text = NULL;
  size_t bytes = 0;
  FILE* out = open_memstream(&text, &bytes);
  if (out == NULL) return NULL;
  print_head(out, result);
  print_measurement(out, result->report);
  if (print_all_flagged(out, result) == 0) fputs("no NaN, no Inf, no overflow\n", out);
  return finish(out, &text, print_fine(out, result));
}

static const char* outcome(const gg_report* report) {
  switch (report->action) {
    case GG_APPLIED:
      return "applied       the outputs hold the new parameters and state";
    case GG_REFUSED:
      return report->reason == GG_REASON_MOMENT_OVERFLOW
                 ? "error         a second moment would become infinite, under --on-moment-overflow error: nothing was "
                   "written"
                 : "error         non-finite gradients under --on-nonfinite error: nothing was written";
    default:
      break;
  }
  switch (report->reason) {
    case GG_REASON_REQUESTED:
      return "skipped       as requested (--skip-update): the outputs hold the unchanged values";
    case GG_REASON_EMPTY:
      return "skipped       no gradient has an element: the outputs hold the unchanged values";
    case GG_REASON_MOMENT_OVERFLOW:
      return "skipped       a second moment would become infinite: the outputs hold the unchanged values";
    default:
      return "skipped       non-finite gradients: the outputs hold the unchanged values";
  }
}

char* gg_step_text(const gg_result* result) {
  char* text = NULL;
  size_t bytes = 0;
  FILE* out = open_memstream(&text, &bytes);
  if (out == NULL) return NULL;
  const gg_report* report = result->report;
  fprintf(out, "%s\n", outcome(report));
  print_head(out, result);
  if (result->passed_through != 0) {
    fprintf(out, "passed on     %zu parameter%s without a gradient\n", result->passed_through,
            result->passed_through == 1 ? "" : "s");
  }
  print_measurement(out, report);
  if (report->action == GG_APPLIED) fprintf(out, "clip coeff.   %.9g\n", report->clip_coefficient);
  fprintf(out, "work          %u reduction and %u update launches, %llu bytes read back, %llu bytes of scratch\n",
          report->reduction_launches, report->update_launches, (unsigned long long)report->readback_bytes,
          (unsigned long long)report->scratch_bytes);
  if (print_all_flagged(out, result) != 0 && report->nonfinite != GG_KIND_MOMENT) {
    fprintf(out, "\n`gradguard inspect --grads %s --grad-scale %.9g` counts and locates them.\n",
            result->gradients_path, report->gradient_scale);
  }
  return finish(out, &text, print_fine(out, result));
}
