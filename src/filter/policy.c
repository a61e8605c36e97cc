/* SPDX-License-Identifier: MIT
 *
 * "KIND", "KIND:BITS", "KIND:fpr=P": from text to a policy, and what a policy may ask.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "filter/family.h"

enum { BITS_MAX = 64, CUSTOM_ID_FIRST = 0x8000 };

static bool is_none(const tamiz_filter_policy *policy)
{
    return strcmp(policy->kind, "none") == 0;
}

static tamiz_status refuse_kind(struct op *op, const char *kind)
{
    char known[256] = "none";
    size_t at = strlen(known);
    for (size_t i = 0; filter_family_at(i); i++) {
        const char *name = filter_family_at(i)->name;
        const size_t size = strlen(name);
        if (at + size + 3 > sizeof known)
            break;
        memcpy(known + at, ", ", 2);
        memcpy(known + at + 2, name, size + 1);
        at += size + 2;
    }
    return op_fail(op, TAMIZ_INVALID_ARGUMENT, "filter kind '%.15s': want one of %s", kind, known);
}

static bool name_is_proper(const char *name)
{
    const size_t size = name ? strlen(name) : 0;
    return size >= 1 && size < sizeof((tamiz_filter_policy *)0)->kind &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == size;
}

static tamiz_status check_custom(struct op *op, const tamiz_filter_policy *policy)
{
    const tamiz_filter_family *custom = policy->custom;
    if (custom->struct_size < sizeof *custom)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "filter family: struct_size=%zu: want %zu",
                       custom->struct_size, sizeof *custom);
    if (!name_is_proper(custom->name) || strcmp(custom->name, policy->kind) != 0 ||
        strcmp(custom->name, "none") == 0 || filter_family_by_name(custom->name))
        return op_fail(op, TAMIZ_INVALID_ARGUMENT,
                       "filter family: its name must be the policy's kind, and none of tamiz's");
    if (custom->id < CUSTOM_ID_FIRST)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "filter family '%s': id=%u: want %u..65535",
                       custom->name, custom->id, (unsigned)CUSTOM_ID_FIRST);
    if (!custom->plan || !custom->build || !custom->check || !custom->may_contain)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "filter family '%s': a callback is NULL",
                       custom->name);
    return TAMIZ_OK;
}

static tamiz_status check_numbers(struct op *op, const tamiz_filter_policy *policy)
{
    const double bits = policy->bits_per_key, fpr = policy->fpr;
    if (!(bits >= 0 && bits <= BITS_MAX))
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "filter bits per key %g: want above 0, up to %d",
                       bits, BITS_MAX);
    if (!(fpr >= 0 && fpr < 1))
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "filter fpr=%g: want between 0 and 1", fpr);
    if (fpr > 0 && bits > 0)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT,
                       "filter bits per key %g and fpr=%g: want one of the two", bits, fpr);
    return TAMIZ_OK;
}

tamiz_status filter_policy_check(struct op *op, const tamiz_filter_policy *policy)
{
    if (!memchr(policy->kind, 0, sizeof policy->kind))
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "filter kind is not ended");
    tamiz_status st = check_numbers(op, policy);
    if (st == TAMIZ_OK && policy->custom)
        st = check_custom(op, policy);
    else if (st == TAMIZ_OK && !is_none(policy) && !filter_family_by_name(policy->kind))
        st = refuse_kind(op, policy->kind);
    return st;
}

/* A plain decimal number that is all of `text`. Not strtod alone: it takes "nan", "0x1", " 1". */
static bool parse_number(const char *text, double *value)
{
    if (!*text || strspn(text, "0123456789.eE+-") != strlen(text) || strchr("+-eE", *text))
        return false;
    char *end;
    *value = strtod(text, &end);
    return *end == 0 && isfinite(*value) && *value > 0;
}

static tamiz_status parse(struct op *op, const char *text, tamiz_filter_policy *policy)
{
    const char *colon = strchr(text, ':');
    const size_t size = colon ? (size_t)(colon - text) : strlen(text);
    if (size >= sizeof policy->kind)
        return refuse_kind(op, text);
    memcpy(policy->kind, text, size);
    if (!colon)
        return TAMIZ_OK;
    const bool is_rate = strncmp(colon + 1, "fpr=", 4) == 0;
    double value;
    if (!parse_number(colon + (is_rate ? 5 : 1), &value))
        return op_fail(op, TAMIZ_INVALID_ARGUMENT,
                       "filter '%s': want KIND, KIND:BITS or KIND:fpr=P", text);
    if (is_rate && value >= 1)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "filter fpr=%g: want between 0 and 1", value);
    *(is_rate ? &policy->fpr : &policy->bits_per_key) = value;
    return TAMIZ_OK;
}

tamiz_status filter_policy_parse(struct op *op, const char *text, tamiz_filter_policy *policy)
{
    tamiz_filter_policy got = {{0}, 0, 0, NULL};
    tamiz_status st;
    TRY(parse(op, text, &got));
    TRY(filter_policy_check(op, &got));
    *policy = got;
done:
    return st;
}
