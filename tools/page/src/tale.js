// SPDX-License-Identifier: MIT
// A get as a story: the engine's own steps (tamiz_explain_json) as sentences. Nothing is decided here but the words.

import { bytes, percent, t } from "./language.js";

const place = (step) => t(`table ${step.table}, level ${step.level}`, `tabla ${step.table}, nivel ${step.level}`);

// What became of a "maybe": looked up in the steps behind it. "true", "false", or "" where the story ended before.
export function outcome(steps, i) {
    for (const s of steps.slice(i + 1)) {
        if (s.table !== steps[i].table) break;
        if (s.step === "found" || s.step === "tombstone") return "true";
        if (s.step === "absent_in_block") return "false";
        if (s.step === "index" && !s.size) return "false";
    }
    return "";
}

const sentences = {
    memtable: () => t("The memtable was searched: writes that are not in any table yet.", "Se buscó en la memtable: escrituras que aún no están en ninguna tabla."),
    memtable_filter_negative: () => t("The memtable’s own filter: certainly not there.", "El filtro de la propia memtable: seguro que no está."),
    outside_range: (s) => t(`Level ${s.level}: no table’s range spans the key. Nothing to ask.`, `Nivel ${s.level}: ninguna tabla abarca la clave. Nada que preguntar.`),
    filter_negative: (s) => t(`The filter of ${place(s)} (${s.filter}): certainly absent. The table is not touched.`, `El filtro de la ${place(s)} (${s.filter}): ausente con seguridad. La tabla no se toca.`),
    filter_maybe: (s, how) => t(
        `The filter of ${place(s)} (${s.filter}): maybe. It is wrong for ${percent(s.expected_fpr)} of absent keys${how === "true" ? ": this time right, a true positive" : how === "false" ? ": this time wrong, a false positive" : ""}.`,
        `El filtro de la ${place(s)} (${s.filter}): quizá. Se equivoca en el ${percent(s.expected_fpr)} de las claves ausentes${how === "true" ? ": esta vez acertó, un positivo verdadero" : how === "false" ? ": esta vez se equivocó, un falso positivo" : ""}.`),
    no_filter: (s) => t(`${place(s)} has no filter to ask (${s.text || "none"}): it must be looked into.`, `La ${place(s)} no tiene filtro (${s.text || "ninguno"}): hay que mirar dentro.`),
    index: (s) => s.size
        ? t(`The index of ${place(s)}: only the block at byte ${s.offset} can have it.`, `El índice de la ${place(s)}: sólo puede estar en el bloque del byte ${s.offset}.`)
        : t(`The index of ${place(s)}: no block can have it.`, `El índice de la ${place(s)}: ningún bloque puede tenerla.`),
    block_cached: () => t("The block was in the cache: no device read.", "El bloque estaba en la caché: ninguna lectura del disco."),
    block_device: (s) => t(`A device read: ${bytes(s.size)}.`, `Una lectura del disco: ${bytes(s.size)}.`),
    found: (s) => t(`Found: a value of ${bytes(s.size)}.`, `Encontrada: un valor de ${bytes(s.size)}.`),
    tombstone: () => t("Found a deletion: the search ends, the key is absent.", "Se encontró un borrado: la búsqueda termina, la clave no está."),
    absent_in_block: () => t("The block does not have it: this look was for nothing.", "El bloque no la tiene: se miró para nada."),
};

const tones = { filter_negative: "no", block_device: "read", found: "true", absent_in_block: "false", tombstone: "no" };

export function tell(story) {
    return story.steps.map((step, i) => {
        const how = step.step === "filter_maybe" ? outcome(story.steps, i) : "";
        return { words: (sentences[step.step] ?? (() => step.step))(step, how), tone: how || tones[step.step] || "", table: step.table };
    });
}
