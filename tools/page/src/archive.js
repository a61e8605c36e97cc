// SPDX-License-Identifier: MIT
// Files out: one by one, or all of a store as a tar archive (POSIX ustar), which `tar xf` and then the command-line tool open.

const BLOCK = 512;
const encoder = new TextEncoder();

function header(name, size) {
    const block = new Uint8Array(BLOCK);
    const put = (text, at) => block.set(encoder.encode(text), at);
    put(name, 0);
    put("0000600\0", 100);
    put("0000000\0", 108);
    put("0000000\0", 116);
    put(`${size.toString(8).padStart(11, "0")}\0`, 124);
    put("00000000000\0", 136);
    put("        ", 148);
    put("0", 156);
    put("ustar\x0000", 257);
    const sum = block.reduce((a, b) => a + b, 0);
    put(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return block;
}

export function tar(directory, files) {
    const parts = [];
    for (const { name, bytes } of files) {
        parts.push(header(`${directory}/${name}`, bytes.length), bytes, new Uint8Array((BLOCK - (bytes.length % BLOCK)) % BLOCK));
    }
    parts.push(new Uint8Array(2 * BLOCK));
    return new Blob(parts, { type: "application/x-tar" });
}

export function download(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
