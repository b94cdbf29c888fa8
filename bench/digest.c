#include "bench/digest.h"

#include <stdlib.h>
#include <string.h>

#define GG_PIECE ((uint64_t)64 << 20)
#define GG_PRIME 0x9e3779b97f4a7c15u

bool gg_digest_begin(gg_digest* digest) {
  *digest = (gg_digest){.value = GG_PRIME, .piece = malloc(GG_PIECE)};
  return digest->piece != NULL;
}

static uint64_t mix(uint64_t state, uint64_t word) {
  state = (state ^ word) * GG_PRIME; /* one to one for a given state: a changed word changes the result */
  return state ^ (state >> 29);
}

/* Four independent chains, since the multiplications of one wait for each other. */
void gg_digest_bytes(gg_digest* digest, const void* bytes, uint64_t count) {
  const unsigned char* at = bytes;
  uint64_t chains[4] = {digest->value, ~digest->value, count, ~count}, word;
  for (; count >= 32; count -= 32, at += 32)
    for (int i = 0; i < 4; i++) {
      memcpy(&word, at + 8 * i, sizeof word);
      chains[i] = mix(chains[i], word);
    }
  for (; count > 0; count--, at++) chains[0] = mix(chains[0], *at);
  for (int i = 0; i < 4; i++) digest->value = mix(digest->value, chains[i]);
}

gg_status gg_digest_buffer(gg_digest* digest, const gg_buffer* buffer, uint64_t offset, uint64_t bytes) {
  gg_status status = GG_OK;
  for (uint64_t at = 0; at < bytes && status == GG_OK; at += GG_PIECE) {
    uint64_t count = bytes - at < GG_PIECE ? bytes - at : GG_PIECE;
    status = gg_buffer_download(buffer, offset + at, digest->piece, count);
    if (status == GG_OK) gg_digest_bytes(digest, digest->piece, count);
  }
  return status;
}

uint64_t gg_digest_end(gg_digest* digest) {
  free(digest->piece);
  digest->piece = NULL;
  return digest->value;
}
