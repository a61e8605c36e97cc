/* SPDX-License-Identifier: MIT
 *
 * A report as a caller gives it: one of an older library ends earlier. What it does not have, it is
 * not told.
 */
#ifndef TAMIZ_DB_REPORT_H
#define TAMIZ_DB_REPORT_H

#include <string.h>

#include "base/op.h"
#include "tamiz/tamiz.h"

/* Checks, and makes the report to work with: the caller's, or, where that is shorter or NULL, *room
 * with as much of it as there is. Its numbers are 0. */
static inline tamiz_status report_open(tamiz_report *given, tamiz_report *room,
                                       tamiz_report **report)
{
    *room = (tamiz_report)TAMIZ_REPORT_INIT;
    *report = room;
    if (given && given->struct_size < sizeof given->struct_size)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "report: not from TAMIZ_REPORT_INIT");
    if (given && given->struct_size < sizeof *given) {
        memcpy(room, given, given->struct_size);
        room->struct_size = sizeof *room;
    } else if (given) {
        *report = given;
    }
    tamiz_report *r = *report;
    r->files = r->blocks = r->keys = r->damaged = r->lost_bytes = 0;
    return TAMIZ_OK;
}

/* The numbers back to a shorter one. */
static inline void report_close(tamiz_report *given, const tamiz_report *report)
{
    const size_t first = sizeof given->struct_size;
    if (given && given != report)
        memcpy((char *)given + first, (const char *)report + first, given->struct_size - first);
}

#endif
