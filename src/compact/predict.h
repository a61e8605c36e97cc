/* SPDX-License-Identifier: MIT
 *
 * What a policy will write, before anything is written: memtables of keys in random order go
 * through pick_auto itself, over tables that are nothing but a size and a range. Each
 * job is carried out as soon as it is picked, so that a background that falls behind, and then
 * takes more at a time, writes less than this.
 *
 *     write amplification = (flushed + merged) / flushed, the log not counted
 */
#ifndef TAMIZ_COMPACT_PREDICT_H
#define TAMIZ_COMPACT_PREDICT_H

#include "compact/pick.h"

struct prediction {
    uint64_t flushed, merged; /* bytes of tables written */
    uint32_t runs;            /* sorted runs at the end */
};

/* `flush_bytes`: what one memtable makes in level 0. `distinct_bytes`: all keys there are with
 * their values, as large as they would be in tables, drawn evenly and so again and again; 0: no key
 * is written twice. TAMIZ_OUT_OF_MEMORY. */
tamiz_status predict_writes(struct op *op, const struct pick_options *o, uint64_t flush_bytes,
                            uint32_t flushes, uint64_t distinct_bytes, struct prediction *out);

#endif
