/* SPDX-License-Identifier: MIT
 *
 * A store on a simulated machine, and numbered keys in it: what tests of copies and of readers
 * beside a writer share.
 */
#ifndef TAMIZ_TEST_DB_KIT_H
#define TAMIZ_TEST_DB_KIT_H

#include "support/store.h"
#include "tamiz/env_sim.h"

struct world {
    tamiz_env_sim *sim;
    const tamiz_env *env;
};

static inline struct world world_new(uint64_t seed)
{
    struct world w = {.sim = tamiz_env_sim_new(seed)};
    assert_non_null(w.sim);
    w.env = tamiz_env_sim_env(w.sim);
    return w;
}

static inline const char *key_of(int i)
{
    static char key[16];
    (void)snprintf(key, sizeof key, "k%06d", i);
    return key;
}

static inline void put_some(tamiz *db, int from, int to, const char *value)
{
    for (int i = from; i < to; i++)
        test_put(db, key_of(i), value);
}

static inline void expect_some(tamiz *db, int from, int to, const char *value)
{
    for (int i = from; i < to; i++)
        test_expect(db, key_of(i), value, NULL);
}

#endif
