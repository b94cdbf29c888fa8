#include "tests/support/life.h"

#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/random.h"

static const int64_t lengths[GG_LIFE_ENTRIES] = {3, GG_LIFE_LONGEST, 0, 513};
static const gg_dtype gradient_types[GG_LIFE_ENTRIES] = {GG_F32, GG_F16, GG_F32, GG_BF16};

/* Makes a call, once more if it is refused, and leaves the function if the life ends with it. */
#define TRY(life, made, call)                                                  \
  do {                                                                         \
    (life)->enter();                                                           \
    gg_status tried = (call);                                                  \
    (life)->leave();                                                           \
    if (tried == GG_OK) break;                                                 \
    if (!(life)->refused((life), #call, tried, (made))) return false;          \
    gg_test_status((life)->context, (call), GG_OK, #call, __FILE__, __LINE__); \
  } while (0)

static bool begin(gg_life* life) {
  uint64_t used = 0;
  TRY(life, life->buffer, gg_buffer_create(life->context, GG_LIFE_BYTES, &life->buffer));
  TRY(life, NULL, gg_buffer_upload(life->buffer, 0, life->values, GG_LIFE_BYTES));
  TRY(life, NULL, gg_buffer_fill(life->buffer, 4096, 4096, 0x11));
  for (int i = 0; i < GG_LIFE_ENTRIES; i++) {
    life->entries[i] = (gg_entry)GG_ENTRY_INIT;
    life->entries[i].name = "a name";
    life->entries[i].step = (uint64_t)i; /* so that each needs bias corrections of its own */
    for (int role = GG_PARAMETER; role <= GG_EXP_AVG_SQ; role++) {
      gg_dtype dtype = role == GG_GRADIENT ? gradient_types[i] : GG_F32;
      life->entries[i].tensors[role] = gg_tensor_contiguous(life->buffer, used, dtype, 1, &lengths[i]);
      used += ((uint64_t)lengths[i] * 4 + 255) / 256 * 256;
    }
  }
  GG_CHECK(used <= GG_LIFE_BYTES);
  return true;
}

static bool step(gg_life* life) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_group_options options = GG_GROUP_OPTIONS_INIT;
  gg_report report = GG_REPORT_INIT;
  guard.clip = true;
  options.mode = life->mode;
  TRY(life, life->group, gg_group_create(life->context, life->entries, GG_LIFE_ENTRIES, &options, &life->group));
  for (int i = 0; i < 3; i++) {
    adamw.gradient_scale = i < 2 ? 4 : 8;
    TRY(life, life->pending, gg_guarded_adamw_step(life->group, &adamw, &guard, &life->pending));
    TRY(life, NULL, gg_pending_report(life->pending, &report));
    GG_CHECK(report.action == GG_APPLIED && report.per_tensor != NULL);
    TRY(life, NULL, gg_pending_commit(&life->pending));
  }
  TRY(life, life->pending, gg_adamw_step(life->group, &adamw, &life->pending));
  TRY(life, NULL, gg_pending_wait(life->pending));
  TRY(life, NULL, gg_pending_commit(&life->pending));
  return true;
}

static bool measure(gg_life* life) {
  gg_report report = GG_REPORT_INIT;
  gg_tensor_report per_tensor[2];
  gg_tensor gradients[2] = {life->entries[0].tensors[GG_GRADIENT], life->entries[1].tensors[GG_GRADIENT]};
  TRY(life, NULL, gg_gradient_stats(life->context, gradients, 2, 1, &report, per_tensor));
  GG_CHECK(report.measured && report.norm > 0);
  gg_nonfinite_census census = GG_NONFINITE_CENSUS_INIT;
  TRY(life, NULL, gg_gradient_census(life->context, &gradients[1], 1, &census));
  GG_CHECK(census.nan_count + census.inf_count + census.overflow_count == 0);
  TRY(life, NULL, gg_context_synchronize(life->context));
  return true;
}

static bool read_back(gg_life* life) {
  for (size_t i = 0; i < GG_LIFE_ENTRIES; i++)
    for (int which = 0; which < 2; which++) {
      gg_tensor tensor;
      uint64_t bytes = (uint64_t)lengths[i] * sizeof(float);
      TRY(life, NULL, gg_group_tensor(life->group, i, which ? GG_EXP_AVG_SQ : GG_PARAMETER, &tensor));
      TRY(life, NULL, gg_buffer_download(tensor.buffer, tensor.offset, life->results[i][which], bytes));
    }
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  TRY(life, NULL, gg_adamw_once(life->context, life->entries, GG_LIFE_ENTRIES, false, NULL, &guard, NULL, NULL));
  TRY(life, NULL, gg_buffer_download(life->buffer, 0, life->once, GG_LIFE_BYTES));
  return true;
}

void gg_life_fill(gg_life* life) {
  gg_random random = gg_random_stream(17);
  for (size_t i = 0; i < GG_LIFE_BYTES; i++) /* finite in every format: no exponent has its highest bit */
    life->values[i] = (uint8_t)(gg_random_bits(&random) & (i % 2 ? 0x3f : 0xff));
}

bool gg_life_run(gg_life* life) {
  memset(life->results, 0, sizeof life->results);
  memset(life->once, 0, sizeof life->once);
  bool whole = begin(life) && step(life) && measure(life) && read_back(life);
  life->enter();
  if (life->pending != NULL) gg_pending_discard(&life->pending);
  gg_group_destroy(&life->group);
  gg_buffer_destroy(&life->buffer);
  life->leave();
  GG_CHECK(life->group == NULL && life->buffer == NULL);
  life->pending = NULL; /* in place an applied step is not discarded, but goes with its group */
  return whole;
}

void gg_life_compare(const gg_life* life, const gg_life* usual) {
  gg_test_same_bytes("what the group holds", life->results, usual->results, sizeof life->results);
  gg_test_same_bytes("the buffer after a step without a group", life->once, usual->once, sizeof life->once);
}
