// SPDX-License-Identifier: MIT
//
// The same headers from C++: every INIT compiles, and what was put can be walked.
#include <tamiz/tamiz.h>

#include <cstdio>
#include <string>

int main(int argc, char **argv)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz_read_options read = TAMIZ_READ_OPTIONS_INIT;
    tamiz_write_options write = TAMIZ_WRITE_OPTIONS_INIT;
    tamiz_report report = TAMIZ_REPORT_INIT;
    tamiz_stats stats = TAMIZ_STATS_INIT;
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    tamiz *db = nullptr;
    tamiz_iter *it = nullptr;
    std::string seen;
    (void)info;
    if (argc != 2 || tamiz_open(argv[1], &options, &db) != TAMIZ_OK)
        return 1;
    for (const char *key : {"b", "a", "c"})
        if (tamiz_put(db, key, 1, "", 0, &write) != TAMIZ_OK)
            return 1;
    if (tamiz_iter_open(db, &read, &it) != TAMIZ_OK)
        return 1;
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it)) {
        size_t size = 0;
        const char *key = static_cast<const char *>(tamiz_iter_key(it, &size));
        seen.append(key, size);
    }
    tamiz_iter_close(it);
    if (tamiz_verify(db, &report) != TAMIZ_OK || tamiz_stats_get(db, &stats) != TAMIZ_OK)
        return 1;
    if (tamiz_close(db) != TAMIZ_OK || tamiz_destroy(argv[1]) != TAMIZ_OK)
        return 1;
    std::printf("%s\n", seen.c_str());
    return seen == "abc" ? 0 : 1;
}
