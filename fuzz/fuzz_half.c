/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes become numbers: every conversion between fp32 and the two half types must give what
 * tests/float_format.c computes with doubles, the kernels' vector conversions too. */
#include <math.h>
#include <string.h>

#include "core/half.h"
#include "cpu/method.h"
#include "device.h"
#include "float_format.h"
#include "tiny_call.h"

enum { MOST = 96 };

static const char *kernel_sets[5];

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  static const char *const names[] = {"avx512", "avx2", "neon", "scalar"};
  int count = 0;
  (void)argc;
  (void)argv;
  NEED(aclInit(NULL));
  NEED(aclrtSetDevice(0));
  NEED(poolgrad_set_threads(1));
  for (int i = 0; i < 4; i++) {
    setenv("POOLGRAD_ISA", names[i], 1);
    if (pg_isa_configure("fuzz_half") == ACL_SUCCESS) kernel_sets[count++] = names[i];
  }
  (void)aclGetRecentErrMsg();
  return 0;
}

static bool same(double a, double b) {
  return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* 16 bits widen exactly, and come back. */
static void check_widening(uint16_t bits) {
  const float half = pg_float_of_fp16(bits), brain = pg_float_of_bf16(bits);
  if (!same(half, float_decode(&float_formats[F16], &bits))) wrong("fp16 0x%04x is %a", bits, half);
  if (!same(brain, float_decode(&float_formats[BF16], &bits)))
    wrong("bf16 0x%04x is %a", bits, brain);
  if (!isnan(half) && pg_fp16_of_float(half) != bits) wrong("fp16 0x%04x does not come back", bits);
  if (!isnan(brain) && pg_bf16_of_float(brain) != bits)
    wrong("bf16 0x%04x does not come back", bits);
}

/* A NaN stays one and keeps its sign; which one it is stays open. */
static void check_narrowing(float value) {
  const struct {
    const struct float_format *format;
    uint16_t found;
  } ways[] = {{&float_formats[F16], pg_fp16_of_float(value)},
              {&float_formats[BF16], pg_bf16_of_float(value)}};
  for (int i = 0; i < 2; i++) {
    const double found = float_decode(ways[i].format, &ways[i].found);
    if (!same(found, float_round(ways[i].format, value)) ||
        (ways[i].found >> 15) != (signbit(value) ? 1 : 0))
      wrong("%a as %s is 0x%04x", value, ways[i].format->word, ways[i].found);
  }
}

/* CANN's helpers: no infinities and no NaN.  The top exponent is one more binade to read, and never
 * written: what is too large becomes the largest number. */
static void check_saturating(float value, uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double read = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
  if (!same(aclFloat16ToFloat(bits), sign * read))
    wrong("aclFloat16ToFloat(0x%04x) is %a", bits, aclFloat16ToFloat(bits));
  double most = isnan(value) ? INFINITY : fabs(float_round(&float_formats[F16], value));
  if (most > 65504) most = 65504;
  uint16_t expected;
  float_encode(&float_formats[F16], copysign(most, signbit(value) ? -1.0 : 1.0), &expected);
  if (aclFloatToFloat16(value) != expected)
    wrong("aclFloatToFloat16(%a) is 0x%04x", value, aclFloatToFloat16(value));
}

/* Through the kernels: widened, divided, added to +0, narrowed. */
static void check_kernel(int type, const uint16_t *from, int64_t count, int64_t divisor) {
  const struct float_format *format = &float_formats[type];
  uint16_t to[MOST];
  tiny_call(format->dtype, count, divisor, from, to);
  for (int64_t i = 0; i < count; i++) {
    const float quotient = (float)float_decode(format, &from[i]) / (float)divisor;
    const double expected = float_round(format, 0.0f + quotient);
    if (!same(float_decode(format, &to[i]), expected))
      wrong("%s 0x%04x / %lld with %s is 0x%04x", format->word, from[i], (long long)divisor,
            poolgrad_isa(), to[i]);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int64_t divisors[] = {1,   -1,  3,     7,        -5,        10,
                                     127, 257, 65535, 16777217, 1LL << 30, 1LL << 40};
  struct input in = {data, data + size};
  uint16_t halves[MOST];
  const int64_t divisor = divisors[take_below(&in, 12)];
  int64_t count = 0;
  while (count < MOST && (in.at < in.end || count == 0)) {
    const uint16_t high = (uint16_t)(take(&in) << 8 | take(&in));
    const uint16_t low = (uint16_t)(take(&in) << 8 | take(&in));
    check_widening(high);
    check_narrowing(pg_float_of_bits((uint32_t)high << 16 | low));
    check_saturating(pg_float_of_bits((uint32_t)high << 16 | low), low);
    halves[count++] = high;
  }
  for (int i = 0; kernel_sets[i] != NULL; i++) {
    setenv("POOLGRAD_ISA", kernel_sets[i], 1);
    NEED(pg_isa_configure("fuzz_half"));
    check_kernel(F16, halves, count, divisor);
    check_kernel(BF16, halves, count, divisor);
    if (on_cuda()) break; /* kernel sets are the CPU's */
  }
  return 0;
}
