/* SPDX-License-Identifier: MIT
 *
 * Short words for tests that use a whole store through the public calls.
 */
#ifndef TAMIZ_TEST_STORE_H
#define TAMIZ_TEST_STORE_H

#include "support/test.h"
#include "tamiz/tamiz.h"

/* Opens with options text over the defaults; `env` NULL: the real one. */
tamiz *test_open(const char *path, const char *options, const tamiz_env *env);
void test_close(tamiz *db);
void test_put(tamiz *db, const char *key, const char *value);
void test_delete(tamiz *db, const char *key);
/* value NULL: the key must be absent. */
void test_expect(tamiz *db, const char *key, const char *value, const tamiz_snapshot *snapshot);
/* All keys in order, "a=1 b=2", forwards; checked to be the same backwards. Static buffer. */
const char *test_scan(tamiz *db, const tamiz_snapshot *snapshot);
/* Files of the directory whose names end so; the env's. */
size_t test_count_files(const tamiz_env *env, const char *directory, const char *suffix);

#endif
