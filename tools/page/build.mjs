// SPDX-License-Identifier: MIT
// One file from many: PAGE_PACKAGES=node_modules node build.mjs TAMIZ.wasm OUT.html. The same sources give the same bytes, wherever they stand.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [wasm, out] = process.argv.slice(2);
const source = join(dirname(fileURLToPath(import.meta.url)), "src");

const packages = process.env.PAGE_PACKAGES; // the node_modules that tools/page.sh has filled
const { build } = createRequire(join(packages, "any.js"))("esbuild");

const bundle = async (entry) => {
    const result = await build({
        entryPoints: [join(source, entry)], absWorkingDir: source, nodePaths: [packages],
        bundle: true, minify: true, write: false, format: "iife", target: "es2022", legalComments: "none", outdir: "out", charset: "utf8",
    });
    const text = (ending) => result.outputFiles.find((f) => f.path.endsWith(ending))?.text.trim() ?? "";
    return { js: text(".js").replaceAll("</script", "<\\/script"), css: text(".css") };
};

const main = await bundle("main.js");
const space = await bundle("space.js");
const parts = { STYLE: main.css, ENGINE: readFileSync(wasm).toString("base64"), SPACE: space.js, MAIN: main.js };
const licence = (name) => readFileSync(join(packages, name, "LICENSE"), "utf8").trim();
const notice = `<!-- tamiz, MIT licence. It contains:\nuPlot\n${licence("uplot")}\nthree.js\n${licence("three")}\n-->\n`;
const page = readFileSync(join(source, "index.html"), "utf8").replace(/\/\*([A-Z]+)\*\//g, (_, name) => parts[name]);
writeFileSync(out, page.replace("<head>", `${notice}<head>`));
console.log(`${out}: ${Buffer.byteLength(page) + Buffer.byteLength(notice)} bytes`);
