/* SPDX-License-Identifier: MIT
 *
 * How fast writers may go, so that they slow down and never stop. Pure arithmetic: levels and rates
 * in, nanoseconds a byte out.
 *
 * Three tanks fill while writers write and drain in the background: memtables that are not flushed,
 * runs in level 0, bytes that wait to be merged. Each has a level from which it matters and one at
 * which nothing more fits; x is how far it is between the two. With a tank that drains D bytes a
 * second, writers get
 *
 *     x <= 0          ½         →1
 *     no limit   D (1-x)/x  →    0
 *
 * so whatever the machine's speed, a tank comes to rest where as much flows in as drains, at the
 * latest half full, and is never quite full: whoever is paced here seldom has to wait for a whole
 * job to end. The scarcest of the three counts.
 */
#ifndef TAMIZ_COMPACT_PACE_H
#define TAMIZ_COMPACT_PACE_H

#include <stdint.h>

enum pace_reason { PACE_FREE, PACE_FLUSH, PACE_LEVEL0, PACE_DEBT, PACE_REASONS };

struct pace_state {
    uint64_t memtable_bytes; /* of a full one                                               */
    uint64_t unflushed;      /* bytes in all memtables, the active one too                  */
    uint32_t sealed_most;    /* sealed ones at which writers must wait                      */
    double flush_rate;       /* memtable bytes a second; 0: none was flushed yet            */
    uint32_t runs, runs_start, runs_stop; /* level 0; start = stop: it does not matter      */
    uint64_t debt, debt_start, debt_stop; /* bytes to be merged; start = stop: as above     */
    double merge_rate; /* bytes a second that leave their level; 0: none was merged yet     */
};

/* What writers of one byte owe, and because of what; 0 with PACE_FREE. */
double pace_ns_per_byte(const struct pace_state *s, enum pace_reason *reason);

/* A measured rate into a running one: half new, half what was. `running` 0: it was not known. */
double pace_learn(double running, uint64_t bytes, uint64_t ns);

#endif
