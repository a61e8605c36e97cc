/* SPDX-License-Identifier: MIT
 *
 * What the system says of this process: time, CPU, bytes, memory; and of a directory: size.
 */
#ifndef TAMIZ_BENCH_PROCESS_H
#define TAMIZ_BENCH_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

uint64_t now_ns(void);        /* monotonic                              */
uint64_t thread_cpu_ns(void); /* of the calling thread                  */
uint64_t cpu_ns(void);        /* of all threads                         */

struct process_io {
    bool known;
    uint64_t read_bytes, write_bytes; /* that reached a device             */
    uint64_t written_chars;           /* handed to write calls             */
};
struct process_io process_io_now(void);
void process_memory(uint64_t *rss_bytes, uint64_t *peak_bytes);

/* Bytes on disk of the files in a directory, one level deep and below. */
uint64_t directory_bytes(const char *path);
/* Removes the files in it, and what directories hold; makes it where it is missing. false: can't.
 */
bool directory_empty(const char *path);

/* Waits until neither CPU nor writes are used in the background, and `settled(ctx)` where that is
 * not NULL; the seconds until it began to be so. */
double wait_until_idle(bool (*settled)(void *ctx), void *ctx);

#endif
