/* A 64-bit hash of the results, to compare them between paths and devices. */
#ifndef GG_BENCH_DIGEST_H
#define GG_BENCH_DIGEST_H

#include "api/gradguard.h"

typedef struct gg_digest {
  uint64_t value;
  void* piece; /* buffer for a part of device memory */
} gg_digest;

bool gg_digest_begin(gg_digest* digest);
void gg_digest_bytes(gg_digest* digest, const void* bytes, uint64_t count);
gg_status gg_digest_buffer(gg_digest* digest, const gg_buffer* buffer, uint64_t offset, uint64_t bytes);
uint64_t gg_digest_end(gg_digest* digest);

#endif
