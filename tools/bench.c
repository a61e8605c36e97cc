/* SPDX-License-Identifier: MIT
 *
 * `bench`: the workloads of bench/, on this library.
 */
#include "engine.h"
#include "tool.h"

extern const struct engine engine_tamiz;

int bench_run(struct call *call, tamiz *db)
{
    (void)db;
    return bench_main(&engine_tamiz, call->count, call->operands);
}
