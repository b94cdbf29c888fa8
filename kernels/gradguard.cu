// Every kernel, as one unit for nvcc. OpenCL and NVRTC compile the same files joined in the order of SConstruct.
#include "kernels/unfused.h"
#include "kernels/update.h"
#if GG_WITH_GUARD
#include "kernels/reduce.h"
#endif
