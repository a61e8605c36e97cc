/* SPDX-License-Identifier: MIT */
#include "env/file_pool.h"

#include <assert.h>

tamiz_status file_pool_init(struct op *op, struct file_pool *pool, const tamiz_env *env,
                            uint32_t limit)
{
    *pool = (struct file_pool){.env = env, .limit = limit};
    tamiz_status st = mutex_init(op, &pool->mutex);
    if (st != TAMIZ_OK)
        return st;
    st = condition_init(op, &pool->freed);
    if (st != TAMIZ_OK)
        mutex_free(&pool->mutex);
    else
        pool->limit = limit ? limit : 1;
    return st;
}

void file_pool_free(struct file_pool *pool)
{
    if (!pool->limit)
        return;
    assert(!pool->hand);
    condition_free(&pool->freed);
    mutex_free(&pool->mutex);
    pool->limit = 0;
}

static void ring_add(struct file_pool *pool, struct pooled_file *m)
{
    if (!pool->hand) {
        m->next = m->previous = pool->hand = m;
        return;
    }
    m->next = pool->hand; /* behind the hand: looked at last */
    m->previous = pool->hand->previous;
    m->previous->next = m;
    m->next->previous = m;
}

static void ring_remove(struct file_pool *pool, struct pooled_file *m)
{
    if (pool->hand == m)
        pool->hand = m->next == m ? NULL : m->next;
    m->next->previous = m->previous;
    m->previous->next = m->next;
    m->next = m->previous = NULL;
}

/* Takes an idle member out of the ring, its file with it; NULL: all are in use. mutex held. */
static struct file *give_up_one(struct file_pool *pool)
{
    for (uint32_t looked = 0; looked < 2 * pool->open; looked++) {
        struct pooled_file *m = pool->hand;
        pool->hand = m->next;
        if (m->users)
            continue;
        if (m->recent) {
            m->recent = false;
            continue;
        }
        struct file *file = m->file;
        ring_remove(pool, m);
        m->file = NULL;
        pool->open--;
        return file;
    }
    return NULL;
}

/* Room for one more open file; false: there is none and nobody waits for it. mutex held. */
static bool make_room(struct op *op, struct file_pool *pool, const struct pooled_file *member,
                      bool patient)
{
    while (!member->file && pool->open >= pool->limit) {
        struct file *idle = give_up_one(pool);
        if (idle) {
            (void)file_close(op, idle); /* it was only read: a failed close loses nothing */
            op_forgive(op);
        } else if (!patient) {
            return false;
        } else {
            condition_wait(&pool->freed, &pool->mutex);
        }
    }
    return true;
}

static tamiz_status acquire(struct op *op, struct file_pool *pool, struct pooled_file *member,
                            bool patient, struct file **file)
{
    tamiz_status st = TAMIZ_OK;
    *file = NULL;
    mutex_lock(&pool->mutex);
    if (!make_room(op, pool, member, patient)) {
        st = TAMIZ_BUSY;
    } else if (!member->file) {
        st = file_open(op, pool->env, member->path, member->flags, &member->file);
        if (st == TAMIZ_OK) {
            pool->open++;
            ring_add(pool, member);
        }
    }
    if (st == TAMIZ_OK) {
        member->users++;
        member->recent = true;
        *file = member->file;
    }
    mutex_unlock(&pool->mutex);
    return st;
}

tamiz_status file_pool_acquire(struct op *op, struct file_pool *pool, struct pooled_file *member,
                               struct file **file)
{
    return acquire(op, pool, member, true, file);
}

tamiz_status file_pool_try_acquire(struct op *op, struct file_pool *pool,
                                   struct pooled_file *member, struct file **file)
{
    return acquire(op, pool, member, false, file);
}

void file_pool_release(struct file_pool *pool, struct pooled_file *member)
{
    mutex_lock(&pool->mutex);
    assert(member->users > 0);
    if (--member->users == 0)
        condition_signal(&pool->freed);
    mutex_unlock(&pool->mutex);
}

tamiz_status file_pool_pin(struct op *op, struct file_pool *pool, struct pooled_file *member)
{
    struct file *file;
    mutex_lock(&pool->mutex);
    const bool had = member->pinned;
    const bool room = pool->pinned < pool->limit - pool->limit / 4;
    if (!had && room) {
        member->pinned = true;
        pool->pinned++;
    }
    mutex_unlock(&pool->mutex);
    if (had || !room)
        return had ? TAMIZ_OK : TAMIZ_BUSY;
    const tamiz_status st = file_pool_acquire(op, pool, member, &file);
    if (st == TAMIZ_OK)
        return st;
    mutex_lock(&pool->mutex);
    member->pinned = false;
    pool->pinned--;
    mutex_unlock(&pool->mutex);
    return st;
}

void file_pool_forget(struct op *op, struct file_pool *pool, struct pooled_file *member)
{
    mutex_lock(&pool->mutex);
    if (member->pinned) {
        member->pinned = false;
        member->users--;
        pool->pinned--;
    }
    assert(member->users == 0);
    struct file *file = member->file;
    if (file) {
        ring_remove(pool, member);
        member->file = NULL;
        pool->open--;
        condition_signal(&pool->freed);
    }
    mutex_unlock(&pool->mutex);
    (void)file_close(op, file);
}
