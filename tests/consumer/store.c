/* SPDX-License-Identifier: MIT
 *
 * A store as an embedder uses it, against the installed headers and library: one value in, out
 * again after reopening, and an absent key.
 */
#include <tamiz/tamiz.h>

#include <stdio.h>
#include <string.h>

static int failed(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", what, tamiz_error_detail());
    return 1;
}

int main(int argc, char **argv)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz *db = NULL;
    void *value = NULL;
    size_t size = 0;
    if (argc != 2)
        return 2;
    if (tamiz_options_set(&options, "filter=bloom:12 cache=1MiB") != TAMIZ_OK ||
        tamiz_open(argv[1], &options, &db) != TAMIZ_OK)
        return failed("open");
    if (tamiz_put(db, "sieve", 5, "tamiz", 5, NULL) != TAMIZ_OK || tamiz_close(db) != TAMIZ_OK)
        return failed("put");
    if (tamiz_open(argv[1], &options, &db) != TAMIZ_OK)
        return failed("reopen");
    if (tamiz_get(db, "sieve", 5, &value, &size, NULL) != TAMIZ_OK || size != 5 ||
        memcmp(value, "tamiz", 5) != 0)
        return failed("get");
    tamiz_free(value);
    if (tamiz_get(db, "colander", 8, &value, &size, NULL) != TAMIZ_NOT_FOUND || value)
        return failed("get of an absent key");
    if (tamiz_close(db) != TAMIZ_OK || tamiz_destroy(argv[1]) != TAMIZ_OK)
        return failed("close");
    return 0;
}
