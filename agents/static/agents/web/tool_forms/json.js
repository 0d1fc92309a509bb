// A JSON value as a tree that folds. A part is built when a reader opens it.

import { gettext, interpolate } from "../i18n.js";
import { LongText } from "../long_text.js";
import { element, setText } from "../text.js";

const ITEMS_AT_ONCE = 200;

/** Return the element of a list or an object. */
export function jsonTree(value) {
  return element("div", { class: "json" }, items(value));
}

function items(value) {
  const list = element("ul");
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  const add = () => {
    for (const [name, item] of entries.splice(0, ITEMS_AT_ONCE)) list.append(line(String(name), item));
    if (entries.length === 0) return;
    const label = interpolate(gettext("Show more (%(count)s left)"), { count: entries.length });
    const more = element("button", { type: "button", class: "more" }, label);
    const last = element("li", {}, more);
    more.addEventListener("click", () => {
      last.remove();
      add();
    });
    list.append(last);
  };
  add();
  return list;
}

function line(name, value) {
  const key = element("span", { class: "key" });
  setText(key, name);
  if (value === null || typeof value !== "object") return element("li", {}, key, " ", scalar(value));
  const count = Object.keys(value).length;
  const what = Array.isArray(value) ? `[${count}]` : `{${count}}`;
  if (count === 0) return element("li", {}, key, " ", element("span", { class: "quiet" }, what));
  const fold = element("details", {}, element("summary", {}, key, " ", element("span", { class: "quiet" }, what)));
  const fill = () => {
    if (fold.open && !fold.querySelector(":scope > ul")) fold.append(items(value));
  };
  fold.addEventListener("toggle", fill);
  return element("li", {}, fold);
}

function scalar(value) {
  const shown = element("span", { class: `value ${value === null ? "null" : typeof value}` });
  const holder = element("span", {}, shown);
  new LongText(shown).set(typeof value === "string" ? value : JSON.stringify(value));
  return holder;
}
