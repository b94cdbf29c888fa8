/*
 * Trains a small network on real handwritten digits with FP16 gradients under a loss scale, one guarded AdamW step at
 * a time. The loss scale starts too high on purpose: the gradients overflow FP16, the step is skipped, this program
 * halves the scale and goes on. Standard output is the same, to the last digit, on every device: the library gives the
 * same bits on all of them.
 *
 *     train_digits [DEVICE [STEPS [DIGITS_FILE]]]
 */
#include <errno.h>
#include <gradguard/gradguard.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  PIXELS = 64,
  CLASSES = 10,
  LAYERS = 3,
  WIDEST = 64,
  TENSORS = 2 * LAYERS, /* a weight and a bias for each layer */
  TRAINING = 1500,      /* the digits before this one train, the others, by other writers, test */
  BATCH = 125,
  GROWTH_INTERVAL = 20 /* steps in a row without an overflow before the loss scale is doubled */
};

static const int width[LAYERS + 1] = {PIXELS, 64, 32, CLASSES};
static const char* const tensor_name[TENSORS] = {"layer1.weight", "layer1.bias",   "layer2.weight",
                                                 "layer2.bias",   "layer3.weight", "layer3.bias"};

/* ---- The digits: records of 65 bytes, 64 pixels from 0 to 16 row by row, then the label ------------------- */

typedef struct digits {
  int count;
  float (*images)[PIXELS]; /* 0 to 1 */
  unsigned char* labels;
} digits;

static void free_digits(digits* data) {
  free(data->images);
  free(data->labels);
}

static bool read_digits(const char* path, digits* data) {
  enum { RECORD = PIXELS + 1, CAPACITY = 4096 };
  unsigned char record[RECORD];
  FILE* file = fopen(path, "rb");
  if (!file) {
    fprintf(stderr, "train_digits: cannot open %s: %s\n", path, strerror(errno));
    return false;
  }
  data->images = calloc(CAPACITY, sizeof *data->images);
  data->labels = calloc(CAPACITY, 1);
  bool good = data->images && data->labels;
  while (good && data->count < CAPACITY && fread(record, RECORD, 1, file) == 1) {
    for (int i = 0; i < PIXELS; ++i) {
      good = good && record[i] <= 16;
      data->images[data->count][i] = (float)record[i] / 16;
    }
    good = good && record[PIXELS] < CLASSES;
    data->labels[data->count++] = record[PIXELS];
  }
  good = good && !ferror(file) && data->count > TRAINING;
  fclose(file);
  if (!good) fprintf(stderr, "train_digits: %s does not hold the digits\n", path);
  return good;
}

/* ---- FP16 -------------------------------------------------------------------------------------------------- */

/* Rounds to nearest even. What is too large for FP16 (above 65504) becomes infinite: that is the overflow. */
static uint16_t half_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  uint32_t half, rest, tie;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);  /* NaN */
  if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00u); /* 2^16 and more */
  if (magnitude < 0x33000000u) return (uint16_t)sign;              /* below half of the smallest subnormal */
  if (magnitude >= 0x38800000u) {                                  /* normal: 13 bits are dropped */
    half = (magnitude - 0x38000000u) >> 13;
    rest = magnitude & 0x1fffu;
    tie = 0x1000u;
  } else { /* subnormal: the leading one becomes explicit */
    const uint32_t drop = 126 - (magnitude >> 23), fraction = (magnitude & 0x7fffffu) | 0x800000u;
    half = fraction >> drop;
    rest = fraction & ((1u << drop) - 1);
    tie = 1u << (drop - 1);
  }
  if (rest > tie || (rest == tie && (half & 1u))) ++half; /* a carry into the exponent is right, also up to infinity */
  return (uint16_t)(sign | half);
}

static float float_from_half(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 0x3ff;
  float value;
  if (exponent == 31)
    value = fraction ? NAN : INFINITY;
  else
    value = exponent ? ldexpf((float)(fraction + 1024), exponent - 25) : ldexpf((float)fraction, -24);
  return half & 0x8000 ? -value : value;
}

/* ---- The network: three layers, ReLU between them, softmax and cross entropy at the end --------------------- */

typedef struct network {
  float weight[LAYERS][WIDEST * WIDEST]; /* [outputs][inputs] */
  float bias[LAYERS][WIDEST];
} network;

/* Tensor 2l is the weight of layer l, tensor 2l + 1 its bias. */
static float* tensor_values(network* net, int tensor) {
  return tensor % 2 ? net->bias[tensor / 2] : net->weight[tensor / 2];
}

static int tensor_elements(int tensor) {
  const int outputs = width[tensor / 2 + 1];
  return tensor % 2 ? outputs : outputs * width[tensor / 2];
}

/* Weights uniform within sqrt(6 / inputs) (He et al. 2015), from a fixed seed; no bias. */
static void initialise(network* net) {
  uint64_t state = 20240229;
  memset(net, 0, sizeof *net);
  for (int layer = 0; layer < LAYERS; ++layer) {
    const float reach = sqrtf(6.0f / (float)width[layer]);
    for (int i = 0; i < width[layer] * width[layer + 1]; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
      net->weight[layer][i] = reach * ((float)(state >> 40) / 8388608.0f - 1.0f);
    }
  }
}

/* values[0] is the image, values[LAYERS] the class probabilities. */
typedef struct activations {
  float values[LAYERS + 1][WIDEST];
} activations;

/* Returns the loss of one digit. */
static float forward(const network* net, const float* image, int label, activations* out) {
  memcpy(out->values[0], image, PIXELS * sizeof *image);
  for (int layer = 0; layer < LAYERS; ++layer) {
    for (int o = 0; o < width[layer + 1]; ++o) {
      float z = net->bias[layer][o];
      for (int i = 0; i < width[layer]; ++i) z += net->weight[layer][o * width[layer] + i] * out->values[layer][i];
      out->values[layer + 1][o] = layer + 1 < LAYERS && z < 0 ? 0 : z;
    }
  }
  float* p = out->values[LAYERS];
  float highest = p[0], total = 0;
  for (int c = 1; c < CLASSES; ++c) highest = fmaxf(highest, p[c]);
  const float label_z = p[label] - highest;
  for (int c = 0; c < CLASSES; ++c) total += p[c] = expf(p[c] - highest);
  for (int c = 0; c < CLASSES; ++c) p[c] /= total;
  return logf(total) - label_z;
}

/* Adds the gradient of scale * loss of one digit to `sum`. What flows back from layer to layer is rounded to FP16. */
static void backward(const network* net, const activations* at, int label, float scale, network* sum) {
  float delta[WIDEST], next[WIDEST];
  for (int c = 0; c < CLASSES; ++c) {
    const float error = at->values[LAYERS][c] - (c == label ? 1.0f : 0.0f);
    delta[c] = float_from_half(half_from_float(error * scale));
  }
  for (int layer = LAYERS - 1; layer >= 0; --layer) {
    const float* inputs = at->values[layer];
    memset(next, 0, sizeof next);
    for (int o = 0; o < width[layer + 1]; ++o) {
      sum->bias[layer][o] += delta[o];
      for (int i = 0; i < width[layer]; ++i) {
        sum->weight[layer][o * width[layer] + i] += delta[o] * inputs[i];
        next[i] += delta[o] * net->weight[layer][o * width[layer] + i];
      }
    }
    for (int i = 0; i < width[layer]; ++i) delta[i] = inputs[i] > 0 ? float_from_half(half_from_float(next[i])) : 0;
  }
}

/* Mean loss of digits [first, end); `*correct`, if not NULL, counts those recognised. */
static float evaluate(const network* net, const digits* data, int first, int end, int* correct) {
  activations at;
  float loss = 0;
  for (int d = first; d < end; ++d) {
    loss += forward(net, data->images[d], data->labels[d], &at);
    int guess = 0;
    for (int c = 1; c < CLASSES; ++c)
      if (at.values[LAYERS][c] > at.values[LAYERS][guess]) guess = c;
    if (correct) *correct += guess == data->labels[d];
  }
  return loss / (float)(end - first);
}

/* ---- The optimizer: everything that touches the library ------------------------------------------------------ */

typedef struct optimizer {
  gg_context* context;
  gg_buffer *parameters, *gradients, *exp_avg, *exp_avg_sq; /* all tensors, one after the other */
  gg_group* group;
} optimizer;

static bool report_error(const optimizer* self) {
  const gg_error* error = gg_context_error(self->context);
  fprintf(stderr, "train_digits: %s: %s\n", gg_status_name(error->status), error->message);
  return false;
}

static void close_optimizer(optimizer* self) {
  gg_group_destroy(&self->group);
  gg_buffer_destroy(&self->parameters);
  gg_buffer_destroy(&self->gradients);
  gg_buffer_destroy(&self->exp_avg);
  gg_buffer_destroy(&self->exp_avg_sq);
  gg_context_destroy(&self->context);
}

/* Opens the device and makes the group: FP32 parameters and moments, FP16 gradients. */
static bool open_optimizer(optimizer* self, const char* device, network* net) {
  gg_error error = GG_ERROR_INIT;
  gg_device_info info = {.size = sizeof info};
  if (gg_context_create(device, NULL, &self->context, &error)) {
    fprintf(stderr, "train_digits: %s: %s\n", gg_status_name(error.status), error.message);
    return false;
  }
  if (gg_context_device(self->context, &info)) return report_error(self);
  fprintf(stderr, "device %s: %s, kernels %s\n", info.id, info.name, gg_context_kernel(self->context));

  uint64_t elements = 0;
  for (int t = 0; t < TENSORS; ++t) elements += (uint64_t)tensor_elements(t);
  const uint64_t bytes = elements * sizeof(float);
  if (gg_buffer_create(self->context, bytes, &self->parameters) ||
      gg_buffer_create(self->context, elements * sizeof(uint16_t), &self->gradients) ||
      gg_buffer_create(self->context, bytes, &self->exp_avg) ||
      gg_buffer_create(self->context, bytes, &self->exp_avg_sq) || gg_buffer_fill(self->exp_avg, 0, bytes, 0) ||
      gg_buffer_fill(self->exp_avg_sq, 0, bytes, 0))
    return report_error(self);

  gg_entry entries[TENSORS];
  uint64_t first = 0; /* of the tensor's elements in each buffer */
  for (int t = 0; t < TENSORS; ++t) {
    const int64_t shape[2] = {width[t / 2 + 1], width[t / 2]}; /* a bias has the first dimension alone */
    const uint32_t rank = t % 2 ? 1 : 2;
    const uint64_t offset = first * sizeof(float);
    entries[t] = (gg_entry)GG_ENTRY_INIT;
    entries[t].name = tensor_name[t];
    entries[t].tensors[GG_PARAMETER] = gg_tensor_contiguous(self->parameters, offset, GG_F32, rank, shape);
    entries[t].tensors[GG_GRADIENT] =
        gg_tensor_contiguous(self->gradients, first * sizeof(uint16_t), GG_F16, rank, shape);
    entries[t].tensors[GG_EXP_AVG] = gg_tensor_contiguous(self->exp_avg, offset, GG_F32, rank, shape);
    entries[t].tensors[GG_EXP_AVG_SQ] = gg_tensor_contiguous(self->exp_avg_sq, offset, GG_F32, rank, shape);
    if (gg_buffer_upload(self->parameters, offset, tensor_values(net, t), (uint64_t)tensor_elements(t) * sizeof(float)))
      return report_error(self);
    first += (uint64_t)tensor_elements(t);
  }
  return gg_group_create(self->context, entries, TENSORS, NULL, &self->group) ? report_error(self) : true;
}

/* Rounds the summed gradients to FP16 and puts them on the device. */
static bool upload_gradients(const optimizer* self, network* sum) {
  static uint16_t halves[WIDEST * WIDEST];
  for (int t = 0; t < TENSORS; ++t) {
    gg_tensor place;
    const int elements = tensor_elements(t);
    for (int i = 0; i < elements; ++i) halves[i] = half_from_float(tensor_values(sum, t)[i]);
    if (gg_group_tensor(self->group, (size_t)t, GG_GRADIENT, &place) ||
        gg_buffer_upload(place.buffer, place.offset, halves, (uint64_t)elements * sizeof *halves))
      return report_error(self);
  }
  return true;
}

/* Brings the current parameters back for the next forward pass. A commit changes the buffer they are in. */
static bool download_parameters(const optimizer* self, network* net) {
  for (int t = 0; t < TENSORS; ++t) {
    gg_tensor place;
    if (gg_group_tensor(self->group, (size_t)t, GG_PARAMETER, &place) ||
        gg_buffer_download(place.buffer, place.offset, tensor_values(net, t),
                           (uint64_t)tensor_elements(t) * sizeof(float)))
      return report_error(self);
  }
  return true;
}

/* ---- Training ------------------------------------------------------------------------------------------------ */

typedef struct loss_scale {
  float value;
  int good_steps; /* in a row */
} loss_scale;

/* The end of a step's line: what was done, which tensors were to blame, and what becomes of the loss scale, which is
 * the caller's to choose. */
static void follow_report(const gg_report* report, loss_scale* scale) {
  if (report->action == GG_APPLIED) {
    printf("applied");
    if (++scale->good_steps == GROWTH_INTERVAL) {
      scale->value *= 2;
      scale->good_steps = 0;
      printf(", scale raised to %.0f", (double)scale->value);
    }
  } else {
    scale->value /= 2;
    scale->good_steps = 0;
    printf("SKIPPED, scale lowered to %.0f:", (double)scale->value);
    const char* separator = "";
    for (int t = 0; t < TENSORS; ++t) {
      const uint32_t kinds = report->per_tensor[t].nonfinite;
      if (!kinds) continue;
      printf("%s %s%s%s%s", separator, tensor_name[t], kinds & GG_KIND_NAN ? " NaN" : "",
             kinds & GG_KIND_INF ? " Inf" : "", kinds & GG_KIND_OVERFLOW ? " overflow" : "");
      separator = ",";
    }
  }
  printf("\n");
}

/* One batch forward and backward, one guarded step, one line. */
static bool train_step(const optimizer* opt, network* net, const digits* data, int step, loss_scale* scale) {
  static network sum;
  activations at;
  float loss = 0;
  memset(&sum, 0, sizeof sum);
  for (int i = 0; i < BATCH; ++i) {
    /* 7 has no factor in common with 1500, so a pass meets every digit once, in mixed order. */
    const int d = (step % (TRAINING / BATCH) * BATCH + i) * 7 % TRAINING;
    loss += forward(net, data->images[d], data->labels[d], &at) / BATCH;
    backward(net, &at, data->labels[d], scale->value / BATCH, &sum);
  }
  if (!upload_gradients(opt, &sum)) return false;

  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.learning_rate = 5e-3;
  adamw.gradient_scale = (double)scale->value;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 1.0;

  gg_pending* pending = NULL;
  gg_report report = GG_REPORT_INIT;
  if (gg_guarded_adamw_step(opt->group, &adamw, &guard, &pending) || gg_pending_report(pending, &report))
    return report_error(opt);
  printf("%4d  %6.4f  %7.0f  %7.4f  %6.4f  ", step + 1, (double)loss, (double)scale->value, report.norm,
         report.clip_coefficient);
  follow_report(&report, scale);
  if (gg_pending_commit(&pending)) return report_error(opt); /* waits for the device first */
  return download_parameters(opt, net);
}

/* FNV-1a over the bytes of every parameter: equal numbers mean equal bits. */
static uint64_t fingerprint(network* net) {
  uint64_t hash = 14695981039346656037u;
  for (int t = 0; t < TENSORS; ++t) {
    const unsigned char* bytes = (const unsigned char*)tensor_values(net, t);
    for (size_t i = 0; i < (size_t)tensor_elements(t) * sizeof(float); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  }
  return hash;
}

static bool train(const char* device, int steps, const digits* data) {
  static network net;
  optimizer opt = {0};
  loss_scale scale = {1048576, 0}; /* 2^20, too high for this network */
  int correct = 0;
  initialise(&net);
  const float before = evaluate(&net, data, 0, TRAINING, NULL);
  bool good = open_optimizer(&opt, device, &net);
  if (good) printf("step    loss    scale     norm    clip  action\n");
  for (int step = 0; good && step < steps; ++step) good = train_step(&opt, &net, data, step, &scale);
  close_optimizer(&opt);
  if (!good) return false;

  const float after = evaluate(&net, data, 0, TRAINING, NULL);
  evaluate(&net, data, TRAINING, data->count, &correct);
  printf("training loss %.4f -> %.4f; %d of %d unseen digits recognised (%.1f%%); parameter bits %016llx\n",
         (double)before, (double)after, correct, data->count - TRAINING, 100.0 * correct / (data->count - TRAINING),
         (unsigned long long)fingerprint(&net));
  if (!(after < before)) fprintf(stderr, "train_digits: the loss did not fall\n");
  return after < before;
}

int main(int argc, char** argv) {
  char* end = NULL;
  const long steps = argc > 2 ? strtol(argv[2], &end, 10) : 60;
  if (argc > 4 || (argc > 1 && argv[1][0] == '-') || (end && (*end || end == argv[2])) || steps < 1 || steps > 100000) {
    fprintf(
        stderr,
        "usage: train_digits [DEVICE [STEPS [DIGITS_FILE]]]\n"
        "DEVICE is \"auto\", \"cpu\", \"opencl\", \"cuda\" or an id that `gradguard devices` lists; without one it is\n"
        "what GRADGUARD_DEVICE says, or \"auto\". STEPS is 60, DIGITS_FILE examples/data/digits.bin unless given.\n");
    return 2;
  }
  digits data = {0};
  const bool good = read_digits(argc > 3 ? argv[3] : "examples/data/digits.bin", &data) &&
                    train(argc > 1 ? argv[1] : NULL, (int)steps, &data);
  free_digits(&data);
  return good ? 0 : 1;
}
