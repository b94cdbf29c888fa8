/* The statistics of gradients without parameters: a diagnostic that waits for the device. */
#include <stdlib.h>

#include "host/buffer.h"
#include "host/constants.h"
#include "host/environment.h"
#include "host/policy.h"
#include "host/prefix.h"
#include "host/status.h"
#include "host/validate.h"

#define FUNCTION "gg_gradient_stats"

/* The data of one call. */
typedef struct gg_survey {
  gg_context* context;
  size_t count;
  uint64_t* elements; /* by gradient */
  gg_triple* triples; /* by gradient */
  gg_row* rows;       /* the non-empty ones, largest first */
  size_t* index;      /* of each row's gradient */
  uint32_t row_count;
  gg_report report;
} gg_survey;

static void free_survey(gg_survey* survey) {
  free(survey->elements);
  free(survey->triples);
  free(survey->rows);
  free(survey->index);
}

static gg_status make_survey(gg_survey* survey) {
  size_t count = survey->count + 1; /* never 0, for which calloc may return NULL */
  survey->elements = calloc(count, sizeof *survey->elements);
  survey->triples = calloc(count, sizeof *survey->triples);
  survey->rows = calloc(count, sizeof *survey->rows);
  survey->index = calloc(count, sizeof *survey->index);
  if (survey->elements != NULL && survey->triples != NULL && survey->rows != NULL && survey->index != NULL)
    return GG_OK;
  return gg_fail(&survey->context->error, GG_ERROR_NO_MEMORY, FUNCTION, "out of host memory");
}

static gg_status check_gradients(gg_survey* survey, const gg_tensor* gradients) {
  for (size_t i = 0; i < survey->count; i++) {
    gg_subject subject = {survey->context, FUNCTION, i, NULL};
    gg_status status = gg_check_tensor(&subject, GG_GRADIENT, &gradients[i], &survey->elements[i]);
    if (status != GG_OK) return status;
  }
  return GG_OK;
}

static int largest_first(const void* a, const void* b, void* elements) {
  const uint64_t* sizes = elements;
  size_t x = *(const size_t*)a, y = *(const size_t*)b;
  if (sizes[x] != sizes[y]) return sizes[x] > sizes[y] ? -1 : 1;
  return (x > y) - (x < y);
}

static void fill_rows(gg_survey* survey, const gg_tensor* gradients) {
  for (size_t i = 0; i < survey->count; i++)
    if (survey->elements[i] > 0) survey->index[survey->row_count++] = i;
  qsort_r(survey->index, survey->row_count, sizeof *survey->index, largest_first, survey->elements);
  for (uint32_t row = 0; row < survey->row_count; row++) {
    size_t i = survey->index[row];
    survey->rows[row] = (gg_row){.elements = survey->elements[i],
                                 .gradient_dtype = gradients[i].dtype,
                                 .gradient = {gradients[i].buffer->memory, gradients[i].offset}};
    survey->report.elements += survey->elements[i];
  }
}

static gg_status measure_table(gg_survey* survey, gg_table* table, float inverse_scale) {
  gg_device* device = survey->context->device;
  gg_error* error = &survey->context->error;
  gg_status status = device->backend->reduce(device, table, inverse_scale, error);
  gg_readback piece = {.memory = table->summaries,
                       .destination = table->host_summaries,
                       .bytes = (uint64_t)table->rows * sizeof(gg_triple)};
  if (status == GG_OK) status = device->backend->readback(device, &piece, 1, error);
  if (status == GG_OK) status = device->backend->wait(device, error);
  if (status != GG_OK) return status;
  for (uint32_t row = 0; row < survey->row_count; row++)
    survey->triples[survey->index[row]] = table->host_summaries[row];
  survey->report.reduction_launches = table->reduction_launches;
  survey->report.readback_bytes = piece.bytes;
  survey->report.scratch_bytes = table->scratch_bytes;
  return GG_OK;
}

static gg_status measure(gg_survey* survey, float inverse_scale) {
  if (survey->row_count == 0) return GG_OK;
  gg_device* device = survey->context->device;
  gg_table* table = NULL;
  gg_status status =
      device->backend->table(device, survey->rows, survey->row_count, false, false, &table, &survey->context->error);
  if (status != GG_OK) return status;
  status = measure_table(survey, table, inverse_scale);
  device->backend->table_free(device, table);
  return status;
}

static gg_status conclude(gg_survey* survey, gg_tensor_report* per_tensor) {
  gg_decision merged;
  gg_status status = gg_merge_measured(survey->triples, survey->count, &merged, &survey->context->error);
  if (status != GG_OK) return status;
  survey->report.measured = survey->row_count > 0;
  survey->report.norm = merged.norm;
  survey->report.max_abs = merged.max_abs;
  survey->report.nonfinite = merged.nonfinite;
  survey->report.tensors = survey->count;
  survey->report.per_tensor = per_tensor;
  for (size_t i = 0; i < survey->count && per_tensor != NULL; i++)
    gg_report_tensor(&survey->triples[i], survey->elements[i], &per_tensor[i]);
  return GG_OK;
}

static gg_status run(gg_survey* survey, const gg_tensor* gradients, float inverse_scale, gg_tensor_report* per_tensor) {
  gg_status status = make_survey(survey);
  if (status == GG_OK) status = check_gradients(survey, gradients);
  if (status != GG_OK) return status;
  fill_rows(survey, gradients);
  status = measure(survey, inverse_scale);
  return status != GG_OK ? status : conclude(survey, per_tensor);
}

static gg_status measure_gradients(gg_context* context, const gg_tensor* gradients, size_t count, double gradient_scale,
                                   gg_report* statistics, gg_tensor_report* per_tensor) {
  if (context == NULL) return GG_ERROR_ARGUMENT;
  gg_error* error = &context->error;
  gg_status status = gg_context_usable(context, FUNCTION);
  if (status != GG_OK) return status;
  if (statistics == NULL || statistics->size < sizeof(uint32_t))
    return gg_fail(error, GG_ERROR_ARGUMENT, FUNCTION,
                   "`statistics` is NULL or its size is not set: initialise it with GG_REPORT_INIT");
  if ((gradients == NULL && count > 0) || count >= UINT32_MAX)
    return gg_fail(error, GG_ERROR_ARGUMENT, FUNCTION,
                   gradients == NULL ? "`gradients` is NULL" : "there are too many gradients");
  status = gg_check_gradient_scale(gradient_scale, error);
  if (status != GG_OK) return status;
  gg_survey survey = {.context = context, .count = count, .report = GG_REPORT_INIT};
  survey.report.gradient_scale = gradient_scale;
  status = run(&survey, gradients, gg_inverse_scale(gradient_scale), per_tensor);
  free_survey(&survey);
  if (status == GG_OK) gg_copy_prefix(statistics, &survey.report, sizeof survey.report);
  return status;
}

gg_status gg_gradient_stats(gg_context* context, const gg_tensor* gradients, size_t count, double gradient_scale,
                            gg_report* statistics, gg_tensor_report* per_tensor) {
  gg_environment saved = gg_environment_enter();
  gg_status status = measure_gradients(context, gradients, count, gradient_scale, statistics, per_tensor);
  gg_environment_leave(saved);
  return status;
}
