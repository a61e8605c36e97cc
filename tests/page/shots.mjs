// SPDX-License-Identifier: MIT
// Screenshots of each view in both themes and at phone width: node shots.mjs LAB.html DIRECTORY
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch, open } from "./browser.mjs";

const [lab, directory] = process.argv.slice(2);
const url = pathToFileURL(resolve(lab)).href;
const views = {
    filter: "#view=filter&lang=en&m=1024&k=4",
    store: "#view=store&lang=en&fill=5000&bits=10",
    curves: "#view=curves&lang=en",
    lessons: "#view=lessons&lang=es&lesson=1",
};
const kept = ["filter-light-wide", "store-dark-wide", "curves-light-wide", "lessons-light-phone"]; // as the window shows them: for docs/page.md
const browser = await launch();
for (const theme of ["light", "dark"])
    for (const [width, height, size] of [[1280, 1000, "wide"], [390, 844, "phone"]])
        for (const [view, hash] of Object.entries(views)) {
            if (size === "phone" && theme === "dark" && view !== "store") continue;
            const page = await open(browser, url + hash, { colorScheme: theme, viewport: { width, height } });
            if (view === "filter") {
                await page.getByLabel("Words to add").fill("luna, mar, nube, olivo, puente, roca, sal, trigo, uva, viento");
                await page.getByRole("button", { name: "Add", exact: true }).click();
                await page.getByLabel("Ask for a word").fill("madrid");
                await page.getByRole("button", { name: "See it in 3D" }).click();
                await page.getByRole("button", { name: "Build them all" }).click();
            }
            if (view === "store") {
                await page.getByRole("button", { name: "Flush", exact: true }).click();
                await page.getByRole("button", { name: "Ask for 1,000 absent words" }).click();
                await page.getByRole("button", { name: "One that is there" }).click();
            }
            if (view === "lessons") {
                await page.locator("#guess").fill("5");
                await page.getByRole("button", { name: "Comprobar contando" }).click();
            }
            await page.waitForTimeout(400);
            await page.screenshot({ path: join(directory, `${view}-${theme}-${size}.png`), fullPage: true });
            await page.locator(view === "store" ? ".notice" : "header").first().evaluate((e) => e.scrollIntoView());
            if (kept.includes(`${view}-${theme}-${size}`)) await page.screenshot({ path: join(directory, `page-${view}.png`), scale: "css" });
            if (page.errors.length) console.log(view, theme, size, page.errors);
            await page.context().close();
        }
await browser.close();
