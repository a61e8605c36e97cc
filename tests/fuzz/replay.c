/* SPDX-License-Identifier: MIT
 *
 * A fuzz target's main where there is no libFuzzer: each file that is named is run as it is, and
 * then with a few random changes each, always the same ones.
 *
 *     fuzz_log [-runs=N] FILE ...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state = 1;

static uint64_t below(uint64_t n)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % n;
}

/* One change; returns the new size, at most `room`. */
static size_t change(uint8_t *bytes, size_t size, size_t room)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
    const size_t at = size ? (size_t)below(size) : 0;
    switch (below(5)) {
    case 0:
        if (size)
            bytes[at] ^= (uint8_t)(1u << below(8));
        return size;
    case 1:
        if (size)
            bytes[at] = edges[below(sizeof edges)];
        return size;
    case 2: return at;
    case 3:
        if (size >= 8)
            memset(bytes + at / 8 * 8, edges[below(sizeof edges)], size - at < 8 ? size - at : 8);
        return size;
    default:
        if (size < room)
            bytes[size++] = (uint8_t)below(256);
        return size;
    }
}

static int run_file(const char *path, unsigned long runs)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return 1;
    enum { MOST = 1 << 20 };
    uint8_t *whole = malloc(MOST), *bytes = malloc(MOST + 16);
    const size_t size = whole ? fread(whole, 1, MOST, f) : 0;
    (void)fclose(f);
    for (unsigned long i = 0; whole && bytes && i <= runs; i++) {
        size_t now = size;
        memcpy(bytes, whole, size);
        for (uint64_t n = i ? 1 + below(4) : 0; n > 0; n--)
            now = change(bytes, now, MOST);
        uint8_t *exact = malloc(now ? now : 1); /* its end is the allocation's: overreads show */
        if (!exact)
            break;
        memcpy(exact, bytes, now);
        (void)LLVMFuzzerTestOneInput(exact, now);
        free(exact);
    }
    free(whole);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long runs = 100;
    int failed = 0;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "-runs=", 6) == 0)
            runs = strtoul(argv[i] + 6, NULL, 10);
        else
            failed |= run_file(argv[i], runs);
    return failed;
}
