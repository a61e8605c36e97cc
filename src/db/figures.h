/* SPDX-License-Identifier: MIT
 *
 * The figures of tamiz_stats by name, for whatever prints them: one list, so that text, JSON and
 * Prometheus have the same ones under the same names.
 */
#ifndef TAMIZ_DB_FIGURES_H
#define TAMIZ_DB_FIGURES_H

#include "base/buf.h"
#include "tamiz/tamiz.h"

struct figure {
    const char *name;
    size_t offset; /* in tamiz_level_stats or tamiz_stats */
    bool real;     /* a double; else 64 bits */
    bool gauge;    /* goes up and down; else it only grows while the store is open */
};

enum { FIGURES_OF_LEVEL = 19, FIGURES_OF_STORE = 41, FIGURES_OF_IO = 6 };
extern const struct figure figures_of_level[FIGURES_OF_LEVEL]; /* of tamiz_level_stats */
extern const struct figure figures_of_store[FIGURES_OF_STORE]; /* of tamiz_stats */
extern const struct figure figures_of_io[FIGURES_OF_IO]; /* the tamiz_io_stats in tamiz_stats */

void figure_print(struct buf *out, const void *from, const struct figure *f);

#endif
