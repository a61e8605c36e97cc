/* SPDX-License-Identifier: MIT
 *
 * What can be read of a store that may be damaged: of the manifest, of every table that it names
 * (of all tables where it can't be read), and of every log. What can't be read is told to the
 * report. Nothing is written.
 */
#ifndef TAMIZ_DB_SALVAGE_H
#define TAMIZ_DB_SALVAGE_H

#include "db/report.h"
#include "db/salvage_tree.h"
#include "version/listing.h"

struct salvage {
    struct op *op;        /* borrowed, as the next two */
    struct store *s;      /* made and locked; its state is filled in here */
    tamiz_report *report; /* finds are told here */
    struct listing files;
    bool has_manifest; /* s->state is what it says */
    uint64_t last_seq;
    uint64_t next_seq;          /* behind the last write of the logs; 0: none yet */
    bool gap;                   /* a crash took the end of a log: what begins later says nothing */
    uint64_t next_keyspace;     /* at least */
    struct salvage_tree *trees; /* ids ascending; [0] is the default keyspace */
    size_t tree_count, tree_room;
};

void salvage_init(struct salvage *r, struct op *op, struct store *s, tamiz_report *report);
/* Safe at any stage after salvage_init. */
void salvage_free(struct salvage *r);

/* Tells the report of damage; `lost_bytes` could not be read. */
void salvage_find(struct salvage *r, uint64_t lost_bytes, const char *text);

/* Which files are there. TAMIZ_NOT_FOUND: none of a store. */
tamiz_status salvage_list(struct salvage *r);
/* Reads all of them, each block and each record. Only what ends a repair is a failure: memory, or
 * the disk's space. */
tamiz_status salvage_look(struct salvage *r);

/* All that can be read of one keyspace, as one iterator; what can't be opened was told by
 * salvage_look, and goes to `quiet` again. The caller's to close. NULL: memory is out, recorded. */
struct iter *salvage_sources(struct salvage *r, struct salvage_tree *tree, tamiz_report *quiet);
/* Appends all range deletes that can be read (struct range_delete; keys borrowed from the tree);
 * those that can't are lost, as other deletes are. */
void salvage_ranges(const struct salvage_tree *tree, struct buf *list);

#endif
