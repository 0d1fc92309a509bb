// Comfort for the fields of an agent's definition: more rows, their order, and a search for tools.
// Without this script, rows have a number for their position, and one empty row is at the end.

import { gettext, interpolate } from "./i18n.js";
import { element, visible } from "./text.js";

const NUMBERED = /-(\d+)-/;

class Rows {
  constructor(root) {
    this.root = root;
    this.count = root.querySelector(`input[name="${root.dataset.name}-rows"]`);
    this.blank = root.querySelector("[data-new]").cloneNode(true);
    this.add = element("button", { type: "button" }, interpolate(gettext("Add %(noun)s"), root.dataset));
    this.add.addEventListener("click", () => this.append());
    root.append(this.add);
    for (const row of this.rows()) this.equip(row);
    root.querySelector("[data-new]").remove(); // The button adds rows.
    this.renumber();
  }

  rows() {
    return [...this.root.querySelectorAll(":scope > .vel-row")];
  }

  append() {
    const row = this.blank.cloneNode(true);
    const at = Number(this.count.value);
    this.count.value = String(at + 1);
    const prefix = `${this.root.dataset.name}-`;
    for (const node of row.querySelectorAll("[name], [id], [for], [aria-labelledby]")) {
      for (const name of ["name", "id", "for", "aria-labelledby"]) {
        const value = node.getAttribute(name);
        if (value && value.includes(prefix)) node.setAttribute(name, value.replace(NUMBERED, `-${at}-`));
      }
    }
    this.used(row);
    this.equip(row);
    this.add.before(row);
    this.renumber();
    row.querySelector("input:not([type=hidden]), select, textarea").focus();
    this.changed();
  }

  used(row) {
    row.removeAttribute("data-new");
  }

  equip(row) {
    for (const area of row.querySelectorAll("textarea[data-names]")) suggestNames(area);
    const acts = row.querySelector(".vel-row-acts");
    const removal = acts.querySelector("input[type=checkbox]");
    const position = acts.querySelector("input[type=number]");
    if (position) {
      position.closest("label").hidden = true;
      acts.prepend(this.mover(row, gettext("Move down"), 1));
      acts.prepend(this.mover(row, gettext("Move up"), -1));
    }
    if (removal) {
      removal.addEventListener("change", () => row.classList.toggle("is-removed", removal.checked));
    } else {
      const drop = element("button", { type: "button" }, gettext("Remove"));
      drop.addEventListener("click", () => {
        row.remove();
        this.renumber();
        this.add.focus();
        this.changed();
      });
      acts.append(drop);
    }
  }

  mover(row, label, by) {
    const button = element("button", { type: "button", "aria-label": label, title: label }, by < 0 ? "↑" : "↓");
    button.addEventListener("click", () => {
      const rows = this.rows();
      const other = rows[rows.indexOf(row) + by];
      if (!other) return;
      if (by < 0) other.before(row);
      else other.after(row);
      this.renumber();
      button.focus();
      this.changed();
    });
    return button;
  }

  renumber() {
    const noun = this.root.dataset.noun;
    const name = noun.charAt(0).toUpperCase() + noun.slice(1);
    this.rows().forEach((row, at) => {
      const title = interpolate(gettext("%(name)s %(number)s"), { name, number: at + 1 });
      const position = row.querySelector(".vel-row-acts input[type=number]");
      if (position) position.value = String(at + 1);
      row.querySelector(".vel-row-title").textContent = title;
      row.setAttribute("aria-label", title);
    });
  }

  changed() {
    this.root.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

/** Put a list beside a text with one name on each line. A choice adds a line. */
function suggestNames(area) {
  const names = [...document.getElementById(area.dataset.names).options].map((option) => option.value);
  if (!names.length) return;
  const what = area.closest(".vel-cell").querySelector("label").textContent; // also before it is in the page
  const label = interpolate(gettext("Add to %(what)s"), { what });
  const list = element("select", { class: "vel-add", "aria-label": label }, element("option", { value: "" }, gettext("Add…")));
  for (const name of names) list.append(element("option", { value: name }, visible(name)));
  list.addEventListener("change", () => {
    const lines = area.value.split("\n").map((line) => line.trim()).filter(Boolean);
    if (list.value && !lines.includes(list.value)) lines.push(list.value);
    list.value = "";
    area.value = lines.join("\n");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  });
  area.after(list);
}

function searchTools(picker) {
  const items = [...picker.querySelectorAll(".vel-choices li")];
  if (items.length < 8) return;
  const label = gettext("Find a tool");
  const field = element("input", { type: "search", class: "vel-find", placeholder: label, "aria-label": label });
  field.addEventListener("input", (event) => {
    event.stopPropagation(); // It is no change of the agent.
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of items) {
      const text = item.textContent.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
    }
  });
  picker.querySelector(".vel-choices").before(field);
  // A choice of a tool is a choice of the mode that uses it.
  picker.querySelector(".vel-choices").addEventListener("change", () => {
    const all = picker.querySelector('input[type=radio][value="all"]');
    if (all.checked) picker.querySelector('input[type=radio][value="some"]').checked = true;
  });
}

for (const root of document.querySelectorAll(".vel-rows")) new Rows(root);
// A form may have a thousand fields. Empty inputs of rows are the same as absent ones.
for (const form of new Set([...document.querySelectorAll(".vel-rows")].map((root) => root.closest("form")))) {
  const names = [...form.querySelectorAll(".vel-rows")].map((root) => `${root.dataset.name}-`);
  form.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData]) {
      if (value === "" && names.some((each) => name.startsWith(each))) formData.delete(name);
    }
  });
}
for (const picker of document.querySelectorAll(".vel-picker")) searchTools(picker);
