// SPDX-License-Identifier: MIT
// Elements from code: h("p", { class: "x", onclick: f }, "text", child, …). Text is always text, never markup.

const make = (element, props, children) => {
    for (const [name, value] of Object.entries(props ?? {})) {
        if (value === false || value === null || value === undefined) continue;
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (name === "value" || name === "checked" || name === "textContent") element[name] = value;
        else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
};

export const h = (tag, props, ...children) => make(document.createElement(tag), props, children);

export const fill = (element, ...children) => element.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));

let numbered = 0;

// A control with its label, tied together.
export function field(label, control, hint) {
    control.id ||= `field-${++numbered}`;
    const parts = [h("label", { for: control.id }, label), control];
    if (hint) {
        const id = `${control.id}-hint`;
        control.setAttribute("aria-describedby", id);
        parts.push(h("span", { class: "hint", id }, hint));
    }
    return h("div", { class: "field" }, parts);
}

export const button = (words, onclick, props) => h("button", { type: "button", onclick, ...props }, words);

export const table = (caption, heads, rows) =>
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
        h("table", null, h("caption", null, caption), h("thead", null, h("tr", null, heads.map((x) => h("th", { scope: "col" }, x)))),
            h("tbody", null, rows.map((row) => h("tr", null, row.map((x, i) => (i ? h("td", null, x) : h("th", { scope: "row" }, x))))))));

export const select = (options, value, onchange) => {
    const s = h("select", { onchange: (e) => onchange(e.target.value) }, options.map(([v, words]) => h("option", { value: v }, words)));
    s.value = value;
    return s;
};
