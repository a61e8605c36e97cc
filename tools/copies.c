/* SPDX-License-Identifier: MIT
 *
 * Copies of a whole store: checkpoint, backup, restore.
 */
#include "json.h"
#include "tool.h"

const struct flag restore_flags[] = {
    {"--number", "N", "which backup; without it the newest"},
    {NULL, NULL, NULL},
};

int checkpoint_run(struct call *call, tamiz *db)
{
    return deliver_done(call, tamiz_checkpoint(db, call->operands[1]));
}

static int info_print(const struct call *call, const char *verb, const tamiz_backup_info *info)
{
    struct text out = {0};
    if (call->json) {
        struct json j = json_to(&out);
        json_open(&j, NULL, '{');
        json_u64(&j, "number", info->number);
        json_u64(&j, "tables_kept", info->tables_kept);
        json_u64(&j, "tables_copied", info->tables_copied);
        json_u64(&j, "bytes_copied", info->bytes_copied);
        json_close(&j, '}');
        return deliver_json(call, &out);
    }
    text_printf(&out, "backup %llu %s: ", (unsigned long long)info->number, verb);
    count_show(&out, info->tables_copied);
    text_word(&out, " tables copied and verified, ");
    if (info->tables_kept) {
        count_show(&out, info->tables_kept);
        text_word(&out, " kept, ");
    }
    size_show(&out, info->bytes_copied);
    text_word(&out, "\n");
    return deliver(call, &out);
}

int backup_run(struct call *call, tamiz *db)
{
    tamiz_backup_info info = TAMIZ_BACKUP_INFO_INIT;
    const tamiz_status st = tamiz_backup(db, call->operands[1], &info);
    return st == TAMIZ_OK ? info_print(call, "made", &info) : fail_status(call, st, NULL);
}

int restore_run(struct call *call, tamiz *db)
{
    tamiz_backup_info info = TAMIZ_BACKUP_INFO_INIT;
    uint64_t number = 0;
    if (db)
        return misuse(call, "a store is open");
    if (!call_number(call, "--number", &number))
        return EXIT_USAGE;
    const tamiz_status st =
        tamiz_restore(call->operands[0], number, call->operands[1], NULL, &info);
    if (st == TAMIZ_NOT_FOUND)
        return fail(call, "%s: there is no such backup", call->operands[0]);
    return st == TAMIZ_OK ? info_print(call, "restored", &info) : fail_status(call, st, NULL);
}
