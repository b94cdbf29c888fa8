/* The reference formula by itself, without the library and without Criterion:
 * cc -I. tests/reference_alone.c tests/support/reference_values.c host/reference.c -lm -o reference && ./reference */
#include <stdio.h>

#include "tests/support/reference_values.h"

int main(void) {
  char fault[256];
  if (!gg_reference_holds(fault, sizeof fault)) {
    printf("%s\n", fault);
    return 1;
  }
  printf("the reference formula gives the values worked out by hand\n");
  return 0;
}
