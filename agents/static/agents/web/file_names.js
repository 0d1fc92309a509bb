// Completes `@` and a part of a file's name in a message to the path of the file.

import { gettext } from "./i18n.js";
import { element, setText } from "./text.js";

const PAUSE_MILLISECONDS = 120;
const STARTED = /(?:^|\s)@("?)([^\s"@]*)$/;

let number = 0;

export class FileNames {
  /** `url` returns the paths for `?q=`. */
  constructor(field, url) {
    this.field = field;
    this.url = url;
    this.timer = null;
    this.asked = 0;
    this.chosen = 0;
    this.list = element("ul", { class: "names", role: "listbox", id: `file-names-${++number}`, "aria-label": gettext("Files"), hidden: "" });
    const parent = element("div", { class: "names-place" }, this.list);
    (field.closest("label") ?? field).after(parent);
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-controls", this.list.id);
    field.addEventListener("input", () => this.look());
    field.addEventListener("keydown", (event) => this.key(event));
    field.addEventListener("blur", () => this.close());
    // Keep the focus in the field.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.take([...this.list.children].indexOf(option));
    });
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** The text between `@` and the cursor, or null. */
  get started() {
    const { value, selectionStart: at, selectionEnd: end } = this.field;
    return at === end ? STARTED.exec(value.slice(Math.max(0, at - 300), at))?.[2] ?? null : null;
  }

  look() {
    clearTimeout(this.timer);
    if (this.started === null) this.close();
    else this.timer = setTimeout(() => this.load(), PAUSE_MILLISECONDS);
  }

  async load() {
    const words = this.started;
    if (words === null) return;
    const asked = ++this.asked;
    let found;
    try {
      const response = await fetch(`${this.url}?q=${encodeURIComponent(words)}`, { headers: { accept: "application/json" } });
      if (!response.ok || response.redirected) throw new Error(`status ${response.status}`);
      found = await response.json();
    } catch (error) {
      console.warn("the names of files could not be loaded", error);
      return;
    }
    if (asked === this.asked && this.started === words) this.show(found);
  }

  show({ paths, is_cut: isCut }) {
    this.paths = paths;
    const options = paths.map((path, at) => {
      const option = element("li", { role: "option", id: `${this.list.id}-${at}` });
      setText(option, path);
      return option;
    });
    const note = paths.length === 0 ? gettext("No file has this name.") : gettext("Write more of the name to see other files.");
    if (paths.length === 0 || isCut) options.push(element("li", { class: "quiet", role: "presentation" }, note));
    this.list.replaceChildren(...options);
    this.list.hidden = false;
    if (paths.length > 0) this.choose(0);
  }

  choose(at) {
    this.chosen = (at + this.paths.length) % this.paths.length;
    [...this.list.querySelectorAll("[role=option]")].forEach((option, place) => {
      option.setAttribute("aria-selected", place === this.chosen);
      if (place === this.chosen) option.scrollIntoView({ block: "nearest" });
    });
    this.field.setAttribute("aria-activedescendant", `${this.list.id}-${this.chosen}`);
  }

  close() {
    clearTimeout(this.timer);
    this.asked += 1;
    this.paths = [];
    this.list.hidden = true;
    this.field.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (!this.isOpen || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const isEmpty = this.paths.length === 0;
    if (event.key === "Escape") this.close();
    else if (event.key === "ArrowDown" && !isEmpty) this.choose(this.chosen + 1);
    else if (event.key === "ArrowUp" && !isEmpty) this.choose(this.chosen - 1);
    else if ((event.key === "Enter" || event.key === "Tab") && !isEmpty && !event.shiftKey) this.take(this.chosen);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Replace the started name by a path. A path with a space gets quotation marks. */
  take(at) {
    const { value, selectionStart: until } = this.field;
    const before = value.slice(0, until);
    const from = before.lastIndexOf("@");
    const path = this.paths[at];
    const text = /\s/.test(path) ? `@"${path}" ` : `@${path} `;
    this.field.setRangeText(text, from, until, "end");
    this.close();
    this.field.focus();
  }
}
