/* SPDX-License-Identifier: MIT
 *
 * A simulated machine: an env in memory whose disk forgets what was not synced, lies, fills up and
 * dies on request, the same way each time. For running a store, or a whole program that embeds one,
 * through the failures that real disks have too rarely for a test.
 *
 *     tamiz_env_sim *sim = tamiz_env_sim_new(1);
 *     options.env = tamiz_env_sim_env(sim);
 *     tamiz_env_sim_stop_at(sim, 1000);         // the 1000th call and all after it fail
 *     ... open, write, until something fails; close ...
 *     tamiz_env_sim_crash(sim, TAMIZ_SIM_REORDER, NULL, 7);
 *     ... open again: every acknowledged synced write must be there ...
 *
 * What is remembered. A file has bytes as the program sees them, bytes on the disk, and the list of
 * changes between the two; a sync of the file empties the list. A crash may leave each 512-byte
 * sector as it was after any of the changes to it. A directory's entries are the same: creating,
 * renaming, linking and removing are changes that a sync of the *directory* makes lasting; syncing
 * the file does not.
 *
 * Paths are taken from a root directory that is always there, whether they begin with a slash or
 * not. Every function may be called from any thread, but not from inside a callback where it says
 * so. With one thread, the same calls give the same results.
 */
#ifndef TAMIZ_ENV_SIM_H
#define TAMIZ_ENV_SIM_H

#include "tamiz/env.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tamiz_env_sim tamiz_env_sim;

/* An empty disk, no limits, no faults. Equal seeds: equal random numbers and equal junk. NULL: out
 * of memory. Freed after the last store on it. */
TAMIZ_API tamiz_env_sim *tamiz_env_sim_new(uint64_t seed);
TAMIZ_API void tamiz_env_sim_free(tamiz_env_sim *sim); /* NULL is fine */
/* Valid as long as `sim`. */
TAMIZ_API const tamiz_env *tamiz_env_sim_env(tamiz_env_sim *sim);

/* A second machine with the same disk, synced and not, clock and limits; no open files, locks,
 * faults, counts or callback. So that several crashes can be tried from one moment. NULL: out of
 * memory. */
TAMIZ_API tamiz_env_sim *tamiz_env_sim_copy(tamiz_env_sim *sim);

/* ---- crashes ---- */

typedef enum tamiz_sim_crash {
    TAMIZ_SIM_KEEP,   /* the process dies, the machine lives: nothing is lost, and what was not
                         synced still is not. The boot id stays */
    TAMIZ_SIM_DROP,   /* power cut: all that was not synced vanishes */
    TAMIZ_SIM_TEAR,   /* power cut: all survives, but of the files named `name` the one written to
                         last loses its last n bytes, as far as they were not synced */
    TAMIZ_SIM_ZERO,   /* power cut: as TEAR, but the bytes stay and read as 0 */
    TAMIZ_SIM_JUNK,   /* power cut: as ZERO, with random bytes */
    TAMIZ_SIM_REORDER /* power cut: each unsynced change survives or not on its own, chosen by n */
} tamiz_sim_crash;

/* The program is gone: its files and locks are closed, and what it still calls on them fails with
 * EIO (closing frees them). Ends a stop. Faults and limits stay. `name` is a pattern with * and ?
 * for the last part of the path; NULL: any. */
TAMIZ_API void tamiz_env_sim_crash(tamiz_env_sim *sim, tamiz_sim_crash mode, const char *name,
                                   uint64_t n);

/* ---- calls and faults ---- */

typedef enum tamiz_sim_call {
    TAMIZ_SIM_ANY,    /* matches all that follow */
    TAMIZ_SIM_CHANGE, /* matches those that may change the disk: marked C */
    TAMIZ_SIM_OPEN,
    TAMIZ_SIM_CREATE, /* C: opening with TAMIZ_OPEN_CREATE */
    TAMIZ_SIM_CLOSE,
    TAMIZ_SIM_READ,
    TAMIZ_SIM_WRITE,    /* C */
    TAMIZ_SIM_FSYNC,    /* C */
    TAMIZ_SIM_TRUNCATE, /* C */
    TAMIZ_SIM_ALLOCATE, /* C */
    TAMIZ_SIM_INFO,
    TAMIZ_SIM_LIST,
    TAMIZ_SIM_MKDIR,   /* C */
    TAMIZ_SIM_RMDIR,   /* C */
    TAMIZ_SIM_RENAME,  /* C */
    TAMIZ_SIM_LINK,    /* C */
    TAMIZ_SIM_UNLINK,  /* C */
    TAMIZ_SIM_DIRSYNC, /* C */
    TAMIZ_SIM_LOCK,    /* C: may create the file */
    TAMIZ_SIM_UNLOCK,
    TAMIZ_SIM_CALLS /* how many kinds */
} tamiz_sim_call;

typedef enum tamiz_sim_effect {
    TAMIZ_SIM_FAIL,  /* the call fails with `error` */
    TAMIZ_SIM_SHORT, /* a read gives, a write does only the first `argument` bytes (at most half
                        where 0); the write then fails with `error` */
    TAMIZ_SIM_LOSE,  /* a sync fails with `error`, and what it should have written never will be,
                        though later syncs succeed. The program still reads it from the cache; with
                        argument 1 the cache goes back to what is on the disk as well */
    TAMIZ_SIM_FLIP,  /* a read gives one wrong bit; `argument` says which, modulo its size */
    TAMIZ_SIM_MISDIRECT, /* a read or write happens `argument` bytes further on (4096 where 0) */
    TAMIZ_SIM_STALE,     /* a read gives what is on the disk, not what was written since; a write is
                            reported as done and not done */
    TAMIZ_SIM_DELAY,     /* the clock moves on by `argument` microseconds first */
    TAMIZ_SIM_STOP       /* this call and all that follow fail with EIO until the crash */
} tamiz_sim_effect;

typedef struct tamiz_sim_fault {
    size_t struct_size;
    tamiz_sim_call call;
    const char *name; /* pattern for the last part of a path of the call; NULL: any. An open file
                         has the name it was opened by; a rename or link matches by either name.
                         Copied, at most 63 bytes */
    uint64_t nth;     /* the nth matching call from now on, from 1 */
    tamiz_sim_effect effect;
    int error;         /* an errno, positive, ENOSPC */
    bool sticky;       /* all matching calls from the nth on, not it alone */
    bool after;        /* FAIL, STOP: the call does its work first */
    uint64_t argument; /* see the effects */
} tamiz_sim_fault;
#ifdef __cplusplus
#define TAMIZ_SIM_FAULT_INIT                                                                       \
    {                                                                                              \
        sizeof(tamiz_sim_fault), TAMIZ_SIM_ANY, NULL, 1, TAMIZ_SIM_FAIL, 5, false, false, 0        \
    }
#else
#define TAMIZ_SIM_FAULT_INIT                                                                       \
    {                                                                                              \
        .struct_size = sizeof(tamiz_sim_fault), .nth = 1, .error = 5 /* EIO */                     \
    }
#endif

/* Effects that do not fit a call (SHORT for a rename) act as FAIL. The first fault that matches
 * wins. false: not understood, or 16 are set already. */
TAMIZ_API bool tamiz_env_sim_fault(tamiz_env_sim *sim, const tamiz_sim_fault *fault);
/* How often set faults have acted since they were set. */
TAMIZ_API uint64_t tamiz_env_sim_faults_acted(tamiz_env_sim *sim);
TAMIZ_API void tamiz_env_sim_clear(tamiz_env_sim *sim); /* all faults */

/* Before the call-th call ever, as tamiz_env_sim_calls(sim, TAMIZ_SIM_ANY) counts them, the machine
 * stops: that call and all after it fail with EIO until the crash. 0: never. */
TAMIZ_API void tamiz_env_sim_stop_at(tamiz_env_sim *sim, uint64_t call);
TAMIZ_API bool tamiz_env_sim_stopped(tamiz_env_sim *sim);
/* Calls so far that match; also those that failed. Clocks and random numbers are no calls. */
TAMIZ_API uint64_t tamiz_env_sim_calls(tamiz_env_sim *sim, tamiz_sim_call kind);
/* Called before each call with its number from 1, without a lock held: it may copy the machine. It
 * must not call the env of this one. `call` NULL: none. */
TAMIZ_API void tamiz_env_sim_on_call(tamiz_env_sim *sim,
                                     void (*call)(void *ctx, uint64_t number, tamiz_sim_call kind,
                                                  const char *name),
                                     void *ctx);
/* "fsync". Static. */
TAMIZ_API const char *tamiz_sim_call_name(tamiz_sim_call kind);

/* ---- tasks that take turns ---- */

/*
 * A store opened with threads=0 does everything in the calls that are made, and passes named points
 * on its way, with no lock held:
 *
 *     wal.lead        a group of writes is about to be logged
 *     write.insert    it is in the log, not yet in the memtable
 *     write.publish   it is in the memtable, not yet visible
 *     wal.rotate      a new log is there, its memtable is not
 *     flush.pick      a memtable was chosen, nothing is written
 *     flush.build     before its table is written
 *     flush.install   its table is written and in no version
 *     compact.pick, compact.output, compact.install   the same for a merge
 *     manifest.append before an edit of the manifest
 *     snap.seq        before a snapshot takes its sequence
 *     close.wait      closing, before the background is stopped
 *     wait            a call waits for what another one does: somebody else goes on
 *
 * Tasks are functions that make such calls. tamiz_env_sim_run runs them one at a time; at each
 * point that one passes, `seed` decides which goes on, so that any call may meet any other, or
 * background work, halfway. The same tasks and seed: the same run, on which the same call of the
 * disk is the nth. A store must be used by tasks only meanwhile, and closed by one that is alone
 * with it.
 *
 *     tamiz_env_sim_task(sim, writer, &a);
 *     tamiz_env_sim_task(sim, reader, &b);
 *     tamiz_env_sim_run(sim, 7);            // both have ended
 */
#define TAMIZ_SIM_WAIT "wait"

/* One task more for the next run. `run` is called in a thread of its own. false: out of memory. */
TAMIZ_API bool tamiz_env_sim_task(tamiz_env_sim *sim, void (*run)(void *ctx), void *ctx);
/* Runs all tasks to their ends and forgets them. false: some could not be started. */
TAMIZ_API bool tamiz_env_sim_run(tamiz_env_sim *sim, uint64_t seed);
/* A point of a task's own. `name` stays until the run ends. */
TAMIZ_API void tamiz_env_sim_point(tamiz_env_sim *sim, const char *name);
/* Tasks that come to a point of this name (with * and ?, at most 63 bytes) stay there until
 * tamiz_env_sim_let_go, or until nobody else can go on. false: 8 are set already. */
TAMIZ_API bool tamiz_env_sim_hold(tamiz_env_sim *sim, const char *point);
TAMIZ_API void tamiz_env_sim_let_go(tamiz_env_sim *sim); /* all of them */
/* Tasks that are held now. */
TAMIZ_API uint64_t tamiz_env_sim_held(tamiz_env_sim *sim);
/* Points passed so far, in tasks or not. */
TAMIZ_API uint64_t tamiz_env_sim_points(tamiz_env_sim *sim);
/* Called at each point, in the task that passes it, without a lock held. `point` NULL: none. */
TAMIZ_API void tamiz_env_sim_on_point(tamiz_env_sim *sim,
                                      void (*point)(void *ctx, const char *name), void *ctx);

/* ---- limits ---- */

/* Bytes of all files, sizes or what was allocated for them. Beyond it: ENOSPC, and a write first
 * does what fits. UINT64_MAX: no limit. */
TAMIZ_API void tamiz_env_sim_limit_disk(tamiz_env_sim *sim, uint64_t bytes);
TAMIZ_API uint64_t tamiz_env_sim_disk_used(tamiz_env_sim *sim);
/* Files and locks open at once. Beyond it: EMFILE. */
TAMIZ_API void tamiz_env_sim_limit_files(tamiz_env_sim *sim, uint64_t count);
TAMIZ_API uint64_t tamiz_env_sim_files_open(tamiz_env_sim *sim);

/* ---- clock, rot ---- */

/* Both clocks move on, as if that time had passed. They also do so by a tick with each look. */
TAMIZ_API void tamiz_env_sim_clock_advance(tamiz_env_sim *sim, uint64_t us);
TAMIZ_API void tamiz_env_sim_clock_tick(tamiz_env_sim *sim, uint64_t ns); /* 1000 at first */
/* The wall clock alone is set forward or back. */
TAMIZ_API void tamiz_env_sim_clock_step(tamiz_env_sim *sim, int64_t us);

/* One bit of a file turns over, in the cache and on the disk, unnoticed. false: no such file or
 * bit. Not a call. */
TAMIZ_API bool tamiz_env_sim_flip(tamiz_env_sim *sim, const char *path, uint64_t bit);

#ifdef __cplusplus
}
#endif
#endif
