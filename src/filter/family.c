/* SPDX-License-Identifier: MIT
 *
 * Which families there are: by name, by number, and the best way this machine can run one.
 */
#include "filter/family.h"

#include <string.h>

static const struct filter_family *const families[] = {
    &filter_bloom,  &filter_blocked, &filter_split,    &filter_fuse,     &filter_fuse8,
    &filter_fuse16, &filter_fuse4,   &filter_xor8,     &filter_xor16,    &filter_ribbon,
    &filter_bumped, &filter_cuckoo,  &filter_counting, &filter_scalable,
};
enum { FAMILIES = sizeof families / sizeof *families };

const struct filter_family *filter_family_at(size_t index)
{
    return index < FAMILIES ? families[index] : NULL;
}

const struct filter_family *filter_family_by_name(const char *name)
{
    for (size_t i = 0; i < FAMILIES; i++)
        if (strcmp(families[i]->name, name) == 0)
            return families[i];
    return NULL;
}

const struct filter_family *filter_family_by_id(uint16_t id)
{
    for (size_t i = 0; i < FAMILIES; i++)
        if (families[i]->id == id)
            return families[i];
    return NULL;
}

const struct filter_family *filter_family_best(const struct filter_family *family)
{
    const struct filter_family *best = family;
    for (const struct filter_family *next = family->better; next; next = next->better)
        if (next->usable())
            best = next;
    return best;
}
