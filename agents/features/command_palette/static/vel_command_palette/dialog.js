// The dialog of the palette: a combobox with a list of links.

import { html, render } from "../agents/vendor/lit.js";
import { gettext } from "../agents/web/i18n.js";

export class Palette {
  constructor(url, wait) {
    this.url = url;
    this.wait = wait;
    this.entries = [];
    this.chosen = 0;
    this.words = "";
    this.problem = "";
    this.timer = null;
    this.number = 0;
    this.dialog = document.createElement("dialog");
    this.dialog.className = "palette";
    this.dialog.setAttribute("aria-label", gettext("Find"));
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    document.body.append(this.dialog);
  }

  open() {
    if (this.dialog.open) {
      this.dialog.close();
      return;
    }
    this.words = "";
    this.entries = [];
    this.chosen = 0;
    this.show();
    this.dialog.showModal();
    const field = this.dialog.querySelector("input");
    field.value = "";
    field.focus();
    this.load();
  }

  typed(text) {
    this.words = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), this.wait);
  }

  async load() {
    this.number += 1;
    const { number } = this;
    this.problem = "";
    try {
      const response = await fetch(`${this.url}?q=${encodeURIComponent(this.words)}`, { headers: { accept: "application/json" } });
      if (!response.ok || response.redirected) throw new Error(`status ${response.status}`);
      const { entries } = await response.json();
      if (number !== this.number) return;
      this.entries = entries;
    } catch (error) {
      if (number !== this.number) return;
      console.warn("the entries could not be loaded", error);
      this.entries = [];
      this.problem = gettext("The server did not answer. Reload the page.");
    }
    this.chosen = 0;
    this.show();
  }

  key(event) {
    const last = this.entries.length - 1;
    if (event.key === "ArrowDown") this.chosen = this.chosen >= last ? 0 : this.chosen + 1;
    else if (event.key === "ArrowUp") this.chosen = this.chosen <= 0 ? Math.max(last, 0) : this.chosen - 1;
    // The browser only empties the field at the first Escape.
    else if (event.key === "Escape") this.dialog.close();
    else if (event.key === "Enter") this.dialog.querySelector("[aria-selected=true]")?.click();
    else return;
    event.preventDefault();
    this.show();
    this.dialog.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }

  show() {
    const active = this.entries.length ? `palette-${this.chosen}` : "";
    const label = gettext("Find a page, a conversation or an agent");
    render(html`
      <input type="search" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${active}
        aria-label=${label} placeholder=${label} maxlength="200"
        @input=${(event) => this.typed(event.target.value)} @keydown=${(event) => this.key(event)}>
      <div id="palette-list" role="listbox" aria-label=${gettext("Results")}>${this.entries.map((entry, at) => this.row(entry, at))}</div>
      ${this.problem || this.entries.length === 0 ? html`<p class="quiet" role="status">${this.problem || gettext("Nothing found.")}</p>` : ""}
    `, this.dialog);
  }

  row(entry, at) {
    const isFirst = at === 0 || this.entries[at - 1].group !== entry.group;
    return html`${isFirst ? html`<div class="palette-group" role="presentation">${entry.group}</div>` : ""}
      <a role="option" tabindex="-1" id="palette-${at}" href=${entry.url} aria-selected=${at === this.chosen}>${entry.label}</a>`;
  }
}
