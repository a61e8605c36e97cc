// SPDX-License-Identifier: MIT
// The page as a person meets it, in Chromium; and what it says held against the command-line tool on the same files.
//     PAGE_PACKAGES=node_modules node browser_test.mjs LAB.html TAMIZ
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { inventedWords } from "../../tools/page/src/words.js";
import { launch, open, packages } from "./browser.mjs";

const [lab, tool] = process.argv.slice(2).map((p) => resolve(p));
const url = pathToFileURL(lab).href;
const axe = readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");
const directory = mkdtempSync(join(tmpdir(), "page-browser-"));
const SIZE_MAX = 1.5e6, READY_MS = 1000, FRAME_MS = 4;
const browser = await launch();
let failed = 0;

async function test(name, run) {
    const started = Date.now();
    const pages = [];
    try {
        await run((hash = "", options = {}, where = url) => open(browser, where + hash, options).then((p) => (pages.push(p), p)));
        for (const page of pages) assert.deepEqual(page.errors, []);
        console.log(`ok    ${name} (${Date.now() - started} ms)`);
    } catch (error) {
        failed++;
        console.log(`FAIL  ${name}: ${error.message}`);
    }
    for (const page of pages) await page.context().close();
}

const run = (...args) => execFileSync(tool, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
// An absent key ends the tool with status 1; its words are there all the same.
const explainOfTool = (store, key) => {
    try {
        return JSON.parse(run("--json", "explain", store, key));
    } catch (error) {
        return JSON.parse(error.stdout);
    }
};
const filesOf = (store) => readdirSync(store).filter((f) => f !== "LOCK").map((f) => join(store, f));
const toolStore = (name, words, ...options) => {
    const store = join(directory, name), list = join(directory, `${name}.txt`);
    writeFileSync(list, words.join("\n"));
    execFileSync(tool, ["-o", `memtable=32KiB table=32KiB block=1KiB ${options.join(" ")}`, "load", store, list], { stdio: "ignore" });
    return store;
};
// Which steps, in which tables and with which sizes; nanoseconds are of another machine.
const bare = (story) => ({ ...story, steps: story.steps.map(({ nanoseconds, ...rest }) => rest) });

await test("the file is small and alone", async () => {
    const text = readFileSync(lab, "utf8");
    assert.ok(statSync(lab).size < SIZE_MAX, `${statSync(lab).size} bytes`);
    assert.doesNotMatch(text, /<(script|link|img)[^>]+(src|href)=["']?(https?:)?\/\//);
    console.log(`      ${statSync(lab).size} bytes`);
});

await test("the first view is usable within a second", async (page) => {
    const p = await page();
    const ready = await p.evaluate(() => performance.now());
    const took = await p.evaluate(() => globalThis.tamizReady);
    console.log(`      ready ${Math.round(took)} ms after the start of loading (asked at ${Math.round(ready)})`);
    if (process.env.PAGE_TIMES) assert.ok(took < READY_MS, `${took} ms`);
});

await test("typed words are in, others are answered as the bits say", async (page) => {
    const p = await page("#view=filter&lang=en&m=1024&k=5&words=");
    await p.getByRole("button", { name: "Start empty" }).click();
    await p.getByLabel("Words to add").fill("luna mar nube");
    await p.keyboard.press("Enter");
    for (const [word, words] of [["luna", "is in it"], ["mar", "is in it"], ["zapato", "certainly not"], ["nube", "is in it"]]) {
        await p.getByLabel("Ask for a word").fill(word);
        await p.waitForFunction((w) => document.querySelector("#answer").textContent.includes(w), words);
    }
    assert.match(await p.locator("#bits-words").textContent(), /^3 words, 1024 bits/);
});

await test("10,000 words, and none of them is denied", async (page) => {
    const p = await page("#view=filter&lang=en&m=4096&k=2");
    const words = inventedWords(0, 10000);
    await p.getByLabel("Words to add").fill(words.join(" "));
    await p.getByRole("button", { name: "Add", exact: true }).click();
    const denied = await p.evaluate((all) => {
        const view = globalThis.tamizLab.views.filter;
        return view.filter.ask(view.engine.hashes(all)).filter((x) => !x).length;
    }, words);
    assert.equal(denied, 0);
    assert.match(await p.locator("#view").textContent(), /This filter is full/);
});

for (const [m, k, n] of [[64, 3, 10], [1024, 7, 100], [4096, 4, 600]])
    await test(`the measured rate is inside the band: m=${m}, k=${k}, n=${n}`, async (page) => {
        const p = await page(`#view=filter&lang=en&m=${m}&k=${k}&words=${inventedWords(0, Math.min(n, 150)).join(",")}`);
        await p.evaluate((all) => globalThis.tamizLab.views.filter.add(all), inventedWords(0, n).join("\n"));
        const { inside, words, measured } = await p.evaluate(() => ({ inside: document.querySelector("#rates").dataset.inside, words: globalThis.tamizLab.views.filter.words.length, measured: globalThis.tamizLab.views.filter.measured }));
        assert.equal(words, n);
        assert.equal(inside, "true");
        console.log(`      measured ${(measured * 100).toFixed(3)} %`);
    });

await test("ten words in 64 bits with three hashes: about 5 %", async (page) => {
    const p = await page("#view=lessons&lang=en&lesson=1");
    await p.locator("#guess").fill("5");
    await p.getByRole("button", { name: "Check by counting" }).click();
    const answer = Number(await p.locator("#result").getAttribute("data-answer"));
    assert.ok(answer > 4.2 && answer < 6.3, `${answer}`);
    assert.match(await p.locator("#result").textContent(), /Well predicted/);
});

await test("a counting filter removes, and its neighbours stay", async (page) => {
    const p = await page("#view=filter&lang=en&m=1024&k=4&drawn=counting&words=alba,bruma,cima");
    await p.getByRole("button", { name: "remove bruma" }).click();
    for (const [word, words] of [["bruma", "certainly not"], ["alba", "is in it"], ["cima", "is in it"]]) {
        await p.getByLabel("Ask for a word").fill(word);
        await p.waitForFunction((w) => document.querySelector("#answer").textContent.includes(w), words);
    }
});

await test("all kinds are built side by side, and none denies a member", async (page) => {
    const p = await page("#view=filter&lang=en");
    await p.getByRole("button", { name: "Build them all" }).click();
    const rows = await p.locator("#kinds tbody tr").allTextContents();
    assert.equal(rows.length, 8);
    for (const row of rows) assert.match(row, /none$/);
});

await test("bits can be walked with the keyboard, and say which words set them", async (page) => {
    const p = await page("#view=filter&lang=en&m=64&k=3&words=alba");
    await p.locator(".bits").focus();
    const said = new Set();
    for (let i = 0; i < 64; i++) {
        await p.keyboard.press("ArrowRight");
        said.add((await p.locator("#bit-words").textContent()).includes("alba"));
    }
    assert.deepEqual([...said].sort(), [false, true]);
});

await test("a store is filled and compacted; filters save reads", async (page) => {
    const p = await page("#view=store&lang=en&fill=3000");
    await p.getByRole("button", { name: "Flush", exact: true }).click();
    await p.getByRole("button", { name: "Ask for 1,000 absent words" }).click();
    const count = async (id) => Number((await p.locator(id).textContent()).replace(/\D/g, ""));
    const made = await count("#reads-made"), avoided = await count("#reads-avoided");
    assert.ok(made < 60 && avoided > 500, `${made} made, ${avoided} avoided`);
    await p.getByRole("button", { name: "Compact all" }).click();
    assert.match(await p.locator("#levels").textContent(), /level 1/);
    await p.getByLabel("Get a key").fill(inventedWords(17, 1)[0]);
    await p.getByRole("button", { name: "Get", exact: true }).click();
    assert.match(await p.locator("#tale-end").textContent(), /^Present: 1 read made/);
    console.log(`      ${made} made, ${avoided} avoided`);
});

await test("a get's story is the tool's, on the tool's own files", async (page) => {
    const words = inventedWords(0, 4000);
    const store = toolStore("story", words, "filter=bloom:6", "compression=none");
    const p = await page("#view=store&lang=en");
    await p.locator("#open-files").setInputFiles(filesOf(store));
    await p.waitForFunction(() => document.querySelector("#store-notice").textContent.startsWith("Opened"));
    for (const key of [words[5], words[3999], ...inventedWords(1 << 20, 40)]) {
        const here = await p.evaluate((k) => globalThis.tamizLab.views.store.lab.store.explain(k), key);
        assert.deepEqual(bare(here), bare(explainOfTool(store, key)), key);
    }
});

await test("one table alone opens; a broken or packed one gets a sentence", async (page) => {
    const words = inventedWords(0, 2000);
    const p = await page("#view=store&lang=en");
    const give = async (path, words_back) => {
        await p.locator("#open-files").setInputFiles(path);
        await p.waitForFunction((w) => document.querySelector("#store-notice").textContent.includes(w), words_back);
    };
    const plain = filesOf(toolStore("alone", words, "compression=none")).find((f) => f.endsWith(".sst"));
    await give([plain], "Opened 1 file");
    const bytes = readFileSync(plain);
    bytes[300] ^= 1;
    mkdirSync(join(directory, "broken"));
    const broken = join(directory, "broken", "000007.sst");
    writeFileSync(broken, bytes);
    await give([broken], "Damaged, and refused");
    writeFileSync(broken, "not a table");
    await give([broken], "Damaged, and refused");
    const packed = filesOf(toolStore("packed", words.map((w) => w + "a".repeat(200)), "compression=zstd")).find((f) => f.endsWith(".sst"));
    await give([packed], "packed with zstd");
    assert.match(await p.locator("#levels").textContent(), /table/, "the store before is still there");
});

await test("the page's files open in the tool", async (page) => {
    const p = await page("#view=store&lang=en&fill=2000");
    const [got] = await Promise.all([p.waitForEvent("download"), p.getByRole("button", { name: "Download the whole store (.tar)" }).click()]);
    await got.saveAs(join(directory, "lab.tar"));
    execFileSync("tar", ["xf", "lab.tar"], { cwd: directory });
    assert.equal(run("get", join(directory, "lab"), inventedWords(41, 1)[0]).trim(), "42");
    assert.equal(run("scan", join(directory, "lab"), "--count").trim(), "2000");
    run("verify", join(directory, "lab"));
});

await test("bad input gets a sentence, and the page lives on", async (page) => {
    const p = await page("#view=nonsense&m=0&k=-4&bits=x&kind=nope&fill=1e99&lang=en");
    assert.match(await p.locator("#bits-words").textContent(), /64 bits/);
    await p.evaluate(() => globalThis.tamizLab.views.filter.add("x".repeat(5 << 20)));
    assert.match(await p.locator(".notice").textContent(), /takes up to/);
    await p.evaluate(() => globalThis.tamizLab.views.filter.add(Array.from({ length: 150000 }, (_, i) => `w${i}`).join("\n")));
    assert.match(await p.locator(".notice").textContent(), /is the most/);
    await p.locator("#calc-p").fill("0");
    assert.match(await p.locator("#best").textContent(), /between 0 and 1/);
    await p.getByRole("button", { name: "Store" }).click();
    await p.locator("#put-key").fill("k".repeat(70000));
    await p.getByRole("button", { name: "Put", exact: true }).click();
    assert.match(await p.locator("#store-notice").textContent(), /engine refused/);
});

await test("every lesson counts, in both languages", async (page) => {
    for (const lang of ["en", "es"]) {
        const p = await page(`#view=lessons&lang=${lang}`);
        for (let i = 0; i < 6; i++) {
            await p.locator(".lesson-list button").nth(i).click();
            await p.locator("#guess").fill("3");
            await p.locator("#lesson button.main").click();
            await p.waitForFunction(() => document.querySelector("#result").dataset.answer !== undefined);
            if (lang === "en") console.log(`      ${i + 1}: ${await p.locator("#result").textContent()}`);
        }
        assert.equal(await p.locator("html").getAttribute("lang"), lang);
    }
});

await test("the language: the browser's, ?lang=, the switch", async (page) => {
    const heading = (p) => p.locator("h2").first().textContent();
    assert.match(await heading(await page("", { locale: "es-ES" })), /Un filtro/);
    assert.match(await heading(await page("", { locale: "fr-FR" })), /A filter/);
    const p = await page("?lang=es");
    assert.match(await heading(p), /Un filtro/);
    await p.locator("#language").click();
    assert.match(await heading(p), /A filter/);
});

await test("it works over http too", async (page) => {
    const server = createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(readFileSync(lab)));
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    const p = await page("", {}, `http://127.0.0.1:${server.address().port}/lab.html`);
    await p.getByLabel("Ask for a word").fill("amber");
    assert.match(await p.locator("#answer").textContent(), /is in it/);
    await p.context().close();
    server.close();
});

await test("a frame of 4,096 bits takes at most 4 ms of JavaScript", async (page) => {
    const p = await page("#view=filter&lang=en&m=4096&k=7");
    await p.getByRole("button", { name: "Add 100 invented words" }).click();
    const median = (all) => all.sort((a, b) => a - b)[all.length >> 1];
    const flat = await p.evaluate(async () => {
        const { canvas } = globalThis.tamizLab.views.filter;
        canvas.frames.length = 0;
        for (let i = 0; i < 60; i++) {
            canvas.ask();
            await new Promise(requestAnimationFrame);
        }
        return canvas.frames;
    });
    await p.getByRole("button", { name: "See it in 3D" }).click();
    await p.waitForTimeout(300);
    const space = await p.evaluate(async () => {
        const { space } = globalThis.tamizLab.views.filter;
        if (!space) return null; // asserted below where WebGL is there
        space.frames.length = 0;
        for (let i = 0; i < 40; i++) {
            space.turn(0.02, 0);
            await new Promise(requestAnimationFrame);
        }
        return { frames: space.frames, calls: space.renderer.info.render.calls };
    });
    console.log(`      2D: median ${median(flat).toFixed(2)} ms of ${flat.length}; 3D: ${space ? `median ${median(space.frames).toFixed(2)} ms of ${space.frames.length}, ${space.calls} draw call` : "no WebGL here"}`);
    const able = await p.evaluate(() => document.createElement("canvas").getContext("webgl2") !== null);
    assert.equal(space !== null, able, "3D where there is WebGL");
    if (space) assert.equal(space.calls, 1);
    if (process.env.PAGE_TIMES) assert.ok(median(flat) <= FRAME_MS && (!space || median(space.frames) <= FRAME_MS));
});

for (const theme of ["light", "dark"])
    await test(`axe-core finds nothing in ${theme}`, async (page) => {
        for (const [view, width] of [["filter", 1280], ["store", 1280], ["curves", 1280], ["lessons", 390]]) {
            const p = await page(`#view=${view}&lang=es&fill=2000&m=256&k=4`, { colorScheme: theme, viewport: { width, height: 900 } });
            if (view === "filter") {
                await p.locator("#query").fill("nadie");
                await p.locator("#kinds").evaluate(() => globalThis.tamizLab.views.filter.compareKinds());
            }
            if (view === "store") await p.evaluate(() => globalThis.tamizLab.views.store.askMany());
            if (view === "store") await p.evaluate(() => globalThis.tamizLab.views.store.get("nadie"));
            if (view === "curves") for (const summary of await p.locator("summary").all()) await summary.click();
            await p.evaluate(axe);
            const { violations } = await p.evaluate(() => globalThis.axe.run());
            assert.deepEqual(violations.map((v) => `${view}: ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`), []);
            const over = await p.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            assert.ok(over <= 0, `${view} is ${over} px wider than the window`);
        }
    });

await browser.close();
rmSync(directory, { recursive: true });
console.log(failed ? `${failed} failed` : "all passed");
process.exit(failed ? 1 : 0);
