// SPDX-License-Identifier: MIT
//
// What the engine interface asks of LevelDB and of RocksDB, where the two are called alike:
// statuses, slices and iterators. `Names` has the types Iterator, Slice and Status.
#ifndef BENCH_ENGINE_LEVELDB_KIN_H
#define BENCH_ENGINE_LEVELDB_KIN_H

#include <cstring>

#include "engine.h"

template <class Names> struct Kin {
    using Iterator = typename Names::Iterator;
    using Slice = typename Names::Slice;
    using Status = typename Names::Status;

    static int Answer(const Status &status, const char *what)
    {
        if (status.ok())
            return ENGINE_OK;
        return status.IsNotFound() ? ENGINE_ABSENT : engine_fail(what, status.ToString().c_str());
    }

    static Slice SliceOf(const void *data, size_t size)
    {
        return Slice(static_cast<const char *>(data), size);
    }

    // As much of a value as there is room for; its whole size.
    template <class Value> static size_t CopyOut(const Value &value, void *buffer, size_t capacity)
    {
        std::memcpy(buffer, value.data(), value.size() < capacity ? value.size() : capacity);
        return value.size();
    }

    static Iterator *Iter(void *p)
    {
        return static_cast<Iterator *>(p);
    }
    static void IterSeek(void *p, const void *key, size_t size)
    {
        Iter(p)->Seek(SliceOf(key, size));
    }
    static void IterSeekFirst(void *p)
    {
        Iter(p)->SeekToFirst();
    }
    static void IterSeekLast(void *p)
    {
        Iter(p)->SeekToLast();
    }
    static void IterNext(void *p)
    {
        Iter(p)->Next();
    }
    static void IterPrev(void *p)
    {
        Iter(p)->Prev();
    }
    static bool IterValid(void *p)
    {
        return Iter(p)->Valid();
    }
    static const void *IterKey(void *p, size_t *size)
    {
        *size = Iter(p)->key().size();
        return Iter(p)->key().data();
    }
    static const void *IterValue(void *p, size_t *size)
    {
        *size = Iter(p)->value().size();
        return Iter(p)->value().data();
    }
    static void IterClose(void *p)
    {
        delete Iter(p);
    }
};

#endif
