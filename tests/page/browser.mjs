// SPDX-License-Identifier: MIT
// Debian's Chromium, driven without a download: a fresh profile each time, no network.
import { createRequire } from "node:module";
import { join } from "node:path";

// PAGE_PACKAGES: the node_modules that tools/page.sh has filled.
export const packages = createRequire(join(process.env.PAGE_PACKAGES, "any.js"));
const { chromium } = packages("playwright-core");

const ARGS = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"];

export const browserPath = process.env.CHROMIUM || "/usr/bin/chromium";
export const launch = () => chromium.launch({ executablePath: browserPath, headless: true, args: ARGS });

// A page of the lab; whatever it throws or logs as an error is collected.
export async function open(browser, url, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-US", reducedMotion: "reduce", acceptDownloads: true, ...options });
    const page = await context.newPage();
    page.errors = [];
    page.on("pageerror", (e) => page.errors.push(e.message));
    page.on("console", (m) => m.type() === "error" && page.errors.push(m.text()));
    page.on("request", (r) => /^https?:/.test(r.url()) && !r.url().startsWith(url.split("#")[0]) && page.errors.push(`asked the network for ${r.url()}`));
    await page.goto(url);
    await page.waitForFunction(() => globalThis.tamizLab);
    return page;
}
