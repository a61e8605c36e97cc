/* SPDX-License-Identifier: MIT
 *
 * The inside of the simulated machine (tamiz/env_sim.h), shared by its parts:
 *
 *     sim_file.c   one file's bytes: in the cache, on the disk, and the changes between
 *     sim_node.c   names now and on the disk, and what leads to what
 *     sim_tree.c   paths, and the calls that change names
 *     sim_fault.c  which call meets which fault
 *     sim_handle.c open files and locks
 *     sim_tasks.c  tasks that take turns at named points
 *     sim.c        crashes, copies, limits, the clock: the public face
 *     fs_memory.c  the table of functions
 *
 * All of it is guarded by the machine's mutex but where it says otherwise.
 */
#ifndef TAMIZ_ENV_SIM_INSIDE_H
#define TAMIZ_ENV_SIM_INSIDE_H

#include "base/buf.h"
#include "env/thread.h"
#include "tamiz/env_sim.h"

enum { SECTOR = 512, NAME_BYTES = 256, PATTERN_BYTES = 64, FAULTS = 16, HELD = 8 };

/* ---- one file or directory ---- */

/* A write or truncation that no sync has covered yet. */
struct change {
    struct change *next;
    uint64_t offset; /* a truncation: the new size */
    size_t size;
    bool truncates;
    uint8_t data[];
};

/*
 * cache = what the program reads. disk = what a power cut leaves. Where `changes` is empty and
 * nothing was lost, they are the same. The disk's buffer always has room for all that the cache
 * had, so that neither a sync nor a crash needs memory.
 */
struct node {
    struct node *next, *previous; /* of all nodes */
    struct node *copy;            /* only while the machine is copied */
    uint64_t inode, touched;      /* by its last write; larger is later */
    size_t links;                 /* entries of the present; the root has one of its own */
    size_t opens;                 /* open files and locks */
    size_t disk_links; /* entries of the disk, and changes of entries that no sync has covered */
    bool is_directory, locked;
    struct node *parent;   /* of a directory */
    struct entry *entries; /* of a directory, sorted by name */
    struct buf cache, disk;
    uint64_t allocated;
    struct change *changes; /* oldest first */
    struct change **changes_end;
};

/* A name in a directory, now and on the disk. Goes when nobody needs it any more. */
struct entry {
    struct entry *next, *copy;
    struct node *directory;
    struct node *now, *disk; /* NULL: no such name there */
    size_t pending;          /* changes that point here */
    bool wanted;             /* by the sync that is going on */
    char name[NAME_BYTES];
};

/* Creation or link (to), removal (from), rename (both), not yet on the disk. */
struct entry_change {
    struct entry_change *next, *previous;
    struct entry *from, *to; /* NULL: none */
    struct node *node;
    bool wanted;  /* by the sync that is going on */
    bool dropped; /* by the crash that is going on */
};

/* ---- calls ---- */

struct fault {
    tamiz_sim_fault what; /* .name is not used */
    bool any_name;
    char name[PATTERN_BYTES];
    uint64_t seen; /* matching calls since it was set */
};

/* A call on its way through the machine. */
struct call {
    tamiz_sim_call kind;
    const char *name, *other; /* last parts of paths; NULL: none */
    tamiz_sim_effect effect;  /* DELAY: nothing special any more */
    int error;                /* negative, for SHORT, LOSE and `after` */
    uint64_t argument;
    bool after;
};

struct tamiz_env_sim {
    tamiz_env env;
    struct mutex mutex;
    bool tracks; /* false: a plain file system, which forgets nothing */

    struct node *nodes, *root;
    struct entry_change *changes, *last_change; /* oldest first */
    uint64_t last_inode, last_touch;

    uint64_t seed, random, boot;
    uint64_t generation; /* of the program that runs: files of an older one are dead */
    uint64_t disk_limit, disk_used, files_limit, files_open;
    uint64_t now_ns, tick_ns;
    int64_t wall_step_us;

    struct fault faults[FAULTS];
    size_t fault_count;
    uint64_t faults_acted, stop_at;
    bool stopped;
    uint64_t calls[TAMIZ_SIM_CALLS];
    void (*on_call)(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name);
    void *on_call_ctx;

    struct sim_task *tasks; /* in the order they were added */
    struct sim_task *turn;  /* the one that runs; NULL: none does */
    struct condition tasks_ended;
    uint64_t schedule, points;
    char held[HELD][PATTERN_BYTES]; /* points */
    size_t held_count;
    void (*on_point)(void *ctx, const char *name);
    void *on_point_ctx;
};

/* One splitmix64 step. */
static inline uint64_t sim_mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

const tamiz_env_ops *sim_ops(void); /* fs_memory.c */

/* ---- sim_file.c; all return 0 or a negative errno ---- */

uint64_t node_charge(const struct node *n); /* bytes of the disk's limit */
/* What fits is written where not all of it does. */
int node_write(tamiz_env_sim *s, struct node *n, uint64_t offset, const void *data, size_t size);
int node_truncate(tamiz_env_sim *s, struct node *n, uint64_t size);
int node_allocate(tamiz_env_sim *s, struct node *n, uint64_t size);
void node_sync(struct node *n);
/* The changes will never reach the disk; `revert`: nor are they in the cache any more. */
void node_lose(struct node *n, bool revert);
/* Afterwards the cache is what the disk has. */
void node_power_cut(struct node *n);
/* The disk gets a legal mixture of the unsynced changes. */
void node_reorder(struct node *n, uint64_t seed);
/* The last `size` unsynced bytes vanish, are zeroed or overwritten; the rest survives. */
void node_tear(struct node *n, uint64_t size);
void node_scribble(struct node *n, uint64_t size, bool junk, uint64_t seed);
bool node_copy_bytes(struct node *to, const struct node *from); /* false: out of memory */
void node_free_bytes(struct node *n);

/* ---- sim_node.c ---- */

struct node *node_new(tamiz_env_sim *s, bool is_directory); /* nothing leads to it yet */
/* Frees it where nothing leads to it any more. */
void node_settle(tamiz_env_sim *s, struct node *n);

struct entry *entry_find(struct node *directory, const char *name); /* also one that is not now */
/* The one of that name, made where there is none. NULL: out of memory. */
struct entry *entry_get(struct node *directory, const char *name);
void entry_settle(struct entry *e); /* frees it where nobody needs it; NULL is fine */
bool directory_is_empty(const struct node *directory);
/* Moves `node` from one name (NULL: none) to another (NULL: none), replacing what is there: all or,
 * where memory is out, nothing. Settles the entries. */
int entry_move(tamiz_env_sim *s, struct entry *from, struct entry *to, struct node *node);
void directory_sync(tamiz_env_sim *s, const struct node *directory);

void tree_sync_all(tamiz_env_sim *s);
/* Each unsynced change of entries survives or not (`survives` NULL: none), then the disk's entries
 * are the present ones and whatever nothing leads to is freed. */
void tree_power_cut(tamiz_env_sim *s, bool (*survives)(uint64_t seed, uint64_t index),
                    uint64_t seed);
/* The file that matches and was written to last; NULL: none. */
struct node *tree_newest(tamiz_env_sim *s, const char *pattern);
bool tree_copy(tamiz_env_sim *to, const tamiz_env_sim *from); /* false: out of memory */
void tree_free(tamiz_env_sim *s);

/* ---- sim_tree.c; all return 0 or a negative errno ---- */

/* Where a path ends: `directory` and `name`, and what is there. `name` is empty or dots where the
 * path names the directory itself. */
struct place {
    struct node *directory, *node;
    char name[NAME_BYTES];
};

const char *path_last(const char *path); /* from the last slash on that something follows */
int tree_find(tamiz_env_sim *s, const char *path, struct place *place);
int tree_find_there(tamiz_env_sim *s, const char *path, struct place *place); /* or -ENOENT */
int tree_create(tamiz_env_sim *s, struct place *place, bool is_directory);
int tree_remove(tamiz_env_sim *s, const char *path, bool is_directory);
int tree_rename(tamiz_env_sim *s, const char *from, const char *to);
int tree_link(tamiz_env_sim *s, const char *from, const char *to);
int tree_sync(tamiz_env_sim *s, const char *path);

/* ---- sim_tasks.c ---- */

void sim_point(void *ctx, const char *name); /* tamiz_env_ops.point */
void sim_tasks_free(tamiz_env_sim *s);       /* those that never ran */

/* ---- sim_fault.c ---- */

bool name_matches(const char *pattern, const char *name); /* pattern NULL: yes */
/* Takes the mutex, counts the call, and says what is to become of it: 0, or a negative errno that
 * is the answer without the work. */
int call_begin(tamiz_env_sim *s, struct call *call);
/* The answer, given what the work came to: a fault's error where it went well. Releases the mutex.
 */
int call_end(tamiz_env_sim *s, const struct call *call, int result);

/* ---- sim_handle.c ---- */

/* An open file or a lock. */
struct handle {
    uint64_t generation; /* of the program that opened it; 0: dropped */
    struct node *node;
    int flags;
    char name[NAME_BYTES]; /* as opened, for faults */
};

/* Not tied to a node yet. NULL: out of memory. Needs no mutex. */
struct handle *handle_new(const char *path, int flags);
void handle_free(struct handle *h);
/* Ties it to its node: 0 or a negative errno. The counterpart is handle_drop. */
int handle_take(tamiz_env_sim *s, struct handle *h, struct node *node);
void handle_drop(tamiz_env_sim *s, struct handle *h);
bool handle_lives(const tamiz_env_sim *s, const struct handle *h);

/* call_begin for an open file (-EIO: it is dead), and for a path. */
int call_begin_on(tamiz_env_sim *s, struct call *call, tamiz_sim_call kind, const struct handle *h);
int call_begin_at(tamiz_env_sim *s, struct call *call, tamiz_sim_call kind, const char *path);

#endif
