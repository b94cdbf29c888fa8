/* What guard=host is for: the decision without any device, as a program of a user's. */
#include <gradguard/gradguard.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  /* The gradients [3] and [4], as a device sums them: 3 = 1.5 * 2, so ssq is (3 / 2)^2, and 4 = 2^2. */
  const gg_triple triples[2] = {{3, 2.25f, 0}, {4, 1, 0}};
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 1;
  gg_decision decision = GG_DECISION_INIT;
  gg_error error = GG_ERROR_INIT;
  if (gg_decide(triples, 2, NULL, &guard, &decision, &error) != GG_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  printf("norm %g, clip coefficient %.6f\n", decision.norm, decision.clip_coefficient);

  gg_context* context = NULL;
  if (gg_context_create(NULL, NULL, &context, &error) != GG_ERROR_NO_DEVICE || context != NULL) {
    fprintf(stderr, "a build without backends has made a context\n");
    return 1;
  }
  return strstr(error.message, "no backend") == NULL;
}
