/* Sorts the rows of a group by launch and describes them for the kernels. */
#ifndef GG_BACKENDS_OPENCL_PLAN_H
#define GG_BACKENDS_OPENCL_PLAN_H

#include "backends/opencl/table.h"

/* Fills `placed` (count items). Rows with the same objects stay in the caller's order. */
void gg_opencl_place_rows(const gg_row* rows, uint32_t count, gg_opencl_placed* placed);

/* A row for the kernels. */
gg_device_row gg_opencl_device_row(const gg_row* row, gg_opencl_variant variant, bool amsgrad);

/* The distinct SVM allocations that rows with addresses lie in, to be freed. */
gg_status gg_opencl_list_allocations(const gg_opencl_plan* plan, void*** allocations, uint32_t* count, gg_error* error);

/* GG_OK if kernels may read and write the row's memory as needed. */
gg_status gg_opencl_check_access(const gg_row* row, gg_error* error);

#endif
