// SPDX-License-Identifier: MIT
// The page: one engine, four views, two languages. Everything is in this file: the engine's bytes stand in the document.

import "./style.css";
import "uplot/dist/uPlot.min.css";
import { colors } from "./bits.js";
import { CurvesView } from "./curves.js";
import { button, fill, h } from "./dom.js";
import { Engine } from "./engine.js";
import { FilterView } from "./filter.js";
import { language, setLanguage, t } from "./language.js";
import { LessonsView } from "./lessons.js";
import { readState, VIEWS, writeState } from "./state.js";
import { StoreView } from "./store.js";

// Held from the start: the body is filled anew.
const parts = { engine: document.getElementById("engine"), space: document.getElementById("space") };

function wasmBytes() {
    const text = atob(parts.engine.textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
}

class App {
    constructor(engine) {
        this.engine = engine;
        this.state = readState(location.hash);
        const asked = this.state.lang ?? new URLSearchParams(location.search).get("lang") ?? navigator.languages?.find((l) => /^(en|es)\b/.test(l)) ?? "en";
        this.setLanguage(asked.startsWith("es") ? "es" : "en");
        this.views = { filter: new FilterView(this), store: new StoreView(this), curves: new CurvesView(this), lessons: new LessonsView(this) };
        this.frame();
        window.addEventListener("hashchange", () => {
            if (location.hash === this.written) return;
            const { lang } = this.state;
            this.state = readState(location.hash);
            this.setLanguage(this.state.lang === "es" || this.state.lang === "en" ? this.state.lang : lang);
            this.views.store.lab?.free();
            this.views.store = new StoreView(this);
            this.frame();
        });
        // What nobody caught still gets a sentence, and everything else goes on.
        const tell = (error) => this.alarm && (this.alarm.textContent = t(`Something went wrong in this page: ${error?.message ?? error}. Reloading starts it anew.`, `Algo falló en esta página: ${error?.message ?? error}. Al recargar empieza de nuevo.`));
        window.addEventListener("error", (e) => tell(e.error ?? e.message));
        window.addEventListener("unhandledrejection", (e) => tell(e.reason));
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.themed());
    }

    setLanguage(code) {
        this.state.lang = code;
        setLanguage(code);
    }

    frame() {
        document.title = t("tamiz: the engine, live", "tamiz: el motor, en vivo");
        const names = { filter: t("Filter", "Filtro"), store: t("Store", "Almacén"), curves: t("Curves", "Curvas"), lessons: t("Lessons", "Lecciones") };
        const theme = document.documentElement.dataset.theme;
        this.root = h("main", { id: "view", tabindex: -1 });
        fill(document.body,
            h("a", { class: "skip", href: "#view", onclick: (e) => {
                e.preventDefault();
                this.root.focus();
            } }, t("Skip to the content", "Ir al contenido")),
            h("header", null, h("h1", null, "tamiz"),
                h("nav", { "aria-label": t("views", "vistas") }, VIEWS.map((view) => button(names[view], () => this.show(view), { "data-view": view }))),
                h("div", { class: "row tools" },
                    button(language() === "en" ? "Español" : "English", () => {
                        this.setLanguage(language() === "en" ? "es" : "en");
                        this.frame();
                    }, { lang: language() === "en" ? "es" : "en", id: "language" }),
                    button(t("Light or dark", "Claro u oscuro"), () => {
                        const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
                        document.documentElement.dataset.theme = dark ? "light" : "dark";
                        this.frame();
                    }, { id: "theme" }))),
            (this.alarm = h("p", { class: "alarm", role: "alert" })),
            this.root,
            h("footer", null, h("p", null, t(
                `tamiz ${this.engine.version}, the same C code as the library, compiled to WebAssembly (without zstd). It runs in this page alone; nothing is sent anywhere.`,
                `tamiz ${this.engine.version}: el mismo código C que la biblioteca, compilado a WebAssembly (sin zstd). Funciona sólo en esta página; no se envía nada a ningún sitio.`))));
        this.remount();
    }

    show(view) {
        this.state.view = view;
        this.remount();
        this.root.focus({ preventScroll: true });
    }

    remount() {
        for (const b of document.querySelectorAll("nav [data-view]")) b.toggleAttribute("aria-current", b.dataset.view === this.state.view) && b.setAttribute("aria-current", "page");
        this.views[this.state.view].mount(this.root);
        this.remember();
    }

    // Into the address, without a step in the history for each slider's twitch.
    remember() {
        const written = writeState(this.state);
        if (written.length > 8000 || written === this.written) return;
        this.written = written;
        clearTimeout(this.writing);
        this.writing = setTimeout(() => history.replaceState(null, "", this.written), 150);
    }

    themed() {
        this.views.filter.canvas?.theme();
        this.views.curves.theme();
    }

    // Three.js stands in the document as text, and runs when somebody asks for it.
    async openSpace(box, still) {
        if (!globalThis.tamizSpace) document.head.append(h("script", { textContent: parts.space.textContent }));
        return globalThis.tamizSpace(box, t("The bits in 3D: drag, or arrow keys, to turn", "Los bits en 3D: arrastra, o usa las flechas, para girar"), still, colors());
    }
}

async function start() {
    try {
        globalThis.tamizLab = new App(await Engine.load(wasmBytes()));
        globalThis.tamizReady = performance.now();
    } catch (error) {
        fill(document.body, h("main", null, h("h1", null, "tamiz"), h("p", { role: "alert" }, `This browser could not start the engine (WebAssembly): ${error.message}. / Este navegador no pudo arrancar el motor.`)));
    }
}

start();
