/* Makes a context on one device, by default the best, and prints which one it is and why. tests/checks/library.py links
 * it statically. */
#include <gradguard/gradguard.h>
#include <stdio.h>

int main(int count, char** arguments) {
  gg_context* context = NULL;
  gg_error error = GG_ERROR_INIT;
  gg_status status = gg_context_create(count > 1 ? arguments[1] : "auto", NULL, &context, &error);
  if (status != GG_OK) {
    printf("%s: %s\n", gg_status_name(status), error.message);
    return 1;
  }
  gg_device_info info = {.size = sizeof info};
  gg_context_device(context, &info);
  printf("%s\n%s", info.id, gg_context_device_report(context));
  gg_context_destroy(&context);
  return 0;
}
