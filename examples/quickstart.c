/* Two parameters with the gradients [3] and [4]: one group, whose norm is 5. */
#include <gradguard/gradguard.h>
#include <stdio.h>

/* Places of the values in one buffer of device memory, eight floats. */
enum { PARAMETERS = 0, GRADIENTS = 2, EXP_AVG = 4, EXP_AVG_SQ = 6 };

static gg_tensor one_float(gg_buffer* buffer, int place) {
  return gg_tensor_contiguous(buffer, (uint64_t)place * sizeof(float), GG_F32, 1, (const int64_t[]){1});
}

int main(void) {
  gg_context* context = NULL;
  gg_buffer* buffer = NULL;
  gg_group* group = NULL;
  gg_pending* pending = NULL;
  gg_error error = GG_ERROR_INIT;

  /* NULL: the device in GRADGUARD_DEVICE, or the best one there is. "cpu", "opencl" or "cuda:0" name one. */
  if (gg_context_create(NULL, NULL, &context, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  const float values[8] = {1, 1, 3, 4, 0, 0, 0, 0}; /* parameters, gradients, moments */
  gg_entry entries[2] = {GG_ENTRY_INIT, GG_ENTRY_INIT};
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 1.0;

  if (gg_buffer_create(context, sizeof values, &buffer)) goto end;
  if (gg_buffer_upload(buffer, 0, values, sizeof values)) goto end;
  for (int i = 0; i < 2; ++i) {
    entries[i].name = i == 0 ? "weight" : "bias";
    entries[i].tensors[GG_PARAMETER] = one_float(buffer, PARAMETERS + i);
    entries[i].tensors[GG_GRADIENT] = one_float(buffer, GRADIENTS + i);
    entries[i].tensors[GG_EXP_AVG] = one_float(buffer, EXP_AVG + i);
    entries[i].tensors[GG_EXP_AVG_SQ] = one_float(buffer, EXP_AVG_SQ + i);
  }
  if (gg_group_create(context, entries, 2, NULL, &group)) goto end;

  /* One guarded step with the default AdamW options. The report is there at once, the update may still be running. */
  gg_report report = GG_REPORT_INIT;
  if (gg_guarded_adamw_step(group, NULL, &guard, &pending)) goto end;
  if (gg_pending_report(pending, &report)) goto end;
  printf("%s: norm %g, clip coefficient %.6f\n", report.action == GG_APPLIED ? "applied" : "skipped", report.norm,
         report.clip_coefficient);
  if (gg_pending_commit(&pending)) goto end; /* waits; from here on the new values are the current ones */

  for (size_t i = 0; i < 2; ++i) {
    gg_tensor current;
    float value;
    if (gg_group_tensor(group, i, GG_PARAMETER, &current)) goto end;
    if (gg_buffer_download(current.buffer, current.offset, &value, sizeof value)) goto end;
    printf("%s: %.6f\n", entries[i].name, value);
  }

end:
  error = *gg_context_error(context);
  if (error.status) fprintf(stderr, "%s: %s\n", gg_status_name(error.status), error.message);
  gg_group_destroy(&group);
  gg_buffer_destroy(&buffer);
  gg_context_destroy(&context);
  return error.status ? 1 : 0;
}
