/* SPDX-License-Identifier: MIT
 *
 * What every tamiz header needs: the status, the detail of an error, the allocator hook, and who
 * frees what.
 *
 * A status carries its meaning in its sign: below 0 something is wrong, 0 is done, above 0 is an
 * ordinary "no". The words for it, file and offset included, are in tamiz_error_detail().
 */
#ifndef TAMIZ_TYPES_H
#define TAMIZ_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TAMIZ_API __attribute__((visibility("default")))
#else
#define TAMIZ_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tamiz_status {
    TAMIZ_OK = 0,
    TAMIZ_NOT_FOUND = 1, /* the key has no value at this point in time                       */
    TAMIZ_INVALID_ARGUMENT = -1, /* the caller broke the contract; nothing was changed */
    TAMIZ_IO_ERROR = -2,      /* the operating system refused; the detail has path and errno      */
    TAMIZ_NO_SPACE = -3,      /* ENOSPC, EDQUOT; nothing acknowledged was lost                    */
    TAMIZ_CORRUPTION = -4,    /* stored bytes fail their check; the detail has file, offset, both */
    TAMIZ_BUSY = -5,          /* another handle or process holds it; the detail says which        */
    TAMIZ_NOT_SUPPORTED = -6, /* format newer than this library, or a part not built in           */
    TAMIZ_OUT_OF_MEMORY = -7,
    TAMIZ_READ_ONLY = -8, /* a write where writing is not allowed, or no longer safe          */
    TAMIZ_CLOSED = -9,
} tamiz_status;

/* The status's own name, "TAMIZ_CORRUPTION"; "TAMIZ_UNKNOWN" for a number that is none. Static, any
 * thread. */
TAMIZ_API const char *tamiz_status_name(tamiz_status status);

/* Of this thread's last failed call, in words for a person. Never NULL; valid until this thread's
 * next failing call. */
TAMIZ_API const char *tamiz_error_detail(void);

/* "MAJOR.MINOR.PATCH" of the library, which may be newer than the header. Static. */
TAMIZ_API const char *tamiz_version(void);

/* Frees a buffer that the library handed out, with the allocator it came from. NULL is fine. Any
 * thread. */
TAMIZ_API void tamiz_free(void *buffer);

/*
 * Where memory comes from. One function, as in Lua: new_size 0 frees and returns NULL; p NULL
 * allocates; else resizes. Both sizes are always given, so that accounting needs no headers.
 * Returns NULL where memory is out, and p is then untouched. Alignment as malloc's. Must be
 * callable from any thread. A NULL resize means libc.
 */
typedef struct tamiz_allocator {
    void *(*resize)(void *ctx, void *p, size_t old_size, size_t new_size);
    void *ctx;
} tamiz_allocator;

#ifdef __cplusplus
}
#endif
#endif
