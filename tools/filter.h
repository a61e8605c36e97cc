/* SPDX-License-Identifier: MIT
 *
 * Filters as the tool shows them: read out of a file, described, drawn.
 */
#ifndef TAMIZ_TOOLS_FILTER_H
#define TAMIZ_TOOLS_FILTER_H

#include "tool.h"

/* The image in `path`, which is an image or a table: appended to `image`. An exit status, said
 * where it is not 0; EXIT_NO: a table with no filter. */
int filter_image_load(const struct call *call, const char *path, struct text *image);

/* A picture: the first bits one by one, then the whole as bars of how full each part is. */
void bits_draw(struct text *out, const unsigned char *payload, size_t size);

/* All kinds that this library can plan, as policies of about ten bits a key: index from 0, NULL
 * ends. */
const char *filter_usual(size_t index);

#endif
