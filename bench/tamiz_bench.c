/* SPDX-License-Identifier: MIT
 *
 * The workloads over one engine: BENCH_ENGINE is given by the build, one program each.
 */
#include "engine.h"

extern const struct engine BENCH_ENGINE;

int main(int argc, char **argv)
{
    return bench_main(&BENCH_ENGINE, argc, argv);
}
