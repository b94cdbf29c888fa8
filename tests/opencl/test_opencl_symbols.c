/* What the OpenCL backend declares itself, since it needs no vendor's header to build: functions and constants,
 * compared with <CL/cl.h> where that is there. No device is needed. */
#include <criterion/criterion.h>

#ifdef GG_HAVE_CL_H
#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#endif

#include "tests/support/compare.h"

#ifndef GG_BACKEND_OPENCL

Test(opencl_symbols, this_build_has_no_opencl_backend, .timeout = 10) { cr_skip("built without backends=opencl"); }

#else

#include "backends/opencl/loader.h"

#ifdef GG_HAVE_CL_H

#define SAME_VALUE(name, value) \
  if ((long long)CL_##name != (long long)(value)) gg_test_fail("CL_%s is %lld", #name, (long long)CL_##name);

Test(opencl_symbols, constants_are_those_of_the_vendor_header, .timeout = 10) {
  GG_CL_CONSTANTS(SAME_VALUE)
  GG_CL_ERRORS(SAME_VALUE)
  GG_CHECK(sizeof(gg_cl_int) == sizeof(cl_int) && sizeof(gg_cl_bits) == sizeof(cl_bitfield));
  GG_CHECK(sizeof(gg_cl_property) == sizeof(cl_context_properties) && sizeof(gg_cl_bool) == sizeof(cl_bool));
}

#define SAME_FUNCTION(result, name, parameters)                     \
  {                                                                 \
    typedef result(*ours) parameters;                               \
    if (!__builtin_types_compatible_p(ours, __typeof__(&name)))     \
      gg_test_fail("%s is declared otherwise in <CL/cl.h>", #name); \
  }

Test(opencl_symbols, functions_are_those_of_the_vendor_header,
     .timeout = 10){GG_CL_REQUIRED_SYMBOLS(SAME_FUNCTION) GG_CL_OPTIONAL_SYMBOLS(SAME_FUNCTION)}

#else

Test(opencl_symbols, are_those_of_the_vendor_header, .timeout = 10) { cr_skip("no <CL/cl.h> at build time"); }

#endif

#endif
