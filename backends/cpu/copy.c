/* A copy with all threads. Large copies use non-temporal stores, as large updates do: an ordinary store first fetches
 * the line that it overwrites, which moves half as many bytes again, and the size above which memcpy avoids that
 * differs between machines. */
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "backends/cpu/cpu.h"
#include "backends/cpu/parallel.h"

#define GG_COPY_PIECE       ((uint64_t)1 << 20) /* bytes that a thread copies at a time */
#define GG_COPY_STREAM_FROM ((uint64_t)16 << 20)

typedef struct gg_copying {
  unsigned char* to;
  const unsigned char* from;
  bool stream;
} gg_copying;

static void copy_past_caches(unsigned char* to, const unsigned char* from, uint64_t bytes) {
#ifdef __SSE2__
  uint64_t head = (64 - (uintptr_t)to % 64) % 64;
  if (head > bytes) head = bytes;
  memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  for (; bytes >= 64; bytes -= 64, to += 64, from += 64)
    for (int part = 0; part < 64; part += 16)
      _mm_stream_si128((__m128i*)(void*)(to + part), _mm_loadu_si128((const __m128i*)(const void*)(from + part)));
  _mm_sfence(); /* other threads must see them */
#endif
  memcpy(to, from, bytes);
}

static void copy_range(void* context, uint64_t begin, uint64_t end) {
  const gg_copying* copying = context;
  if (copying->stream)
    copy_past_caches(copying->to + begin, copying->from + begin, end - begin);
  else
    memcpy(copying->to + begin, copying->from + begin, end - begin);
}

gg_status gg_cpu_copy(gg_device* device, gg_memory* to, uint64_t to_offset, const gg_memory* from, uint64_t from_offset,
                      uint64_t bytes, gg_error* error) {
  (void)error;
  gg_copying copying = {((gg_cpu_memory*)to)->bytes + to_offset, ((const gg_cpu_memory*)from)->bytes + from_offset,
                        bytes >= GG_COPY_STREAM_FROM};
  gg_cpu_parallel(((const gg_cpu_device*)device)->threads, bytes, GG_COPY_PIECE, copy_range, &copying);
  return GG_OK;
}
