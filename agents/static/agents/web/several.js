// Decides several requests together. The result lists the outcome of each.

import { post } from "./card.js";
import { gettext, interpolate } from "./i18n.js";
import { element, visible } from "./text.js";

export class Several {
  /** Calls `decided()` after the server has answered. */
  constructor(form, list, decided) {
    this.form = form;
    this.list = list;
    this.decided = decided;
    this.all = form.querySelector("#select-all");
    this.counted = form.querySelector("#selected-count");
    this.results = form.querySelector("#results");
    form.querySelector("#select-all-label").hidden = false;
    this.all.addEventListener("change", () => {
      for (const box of this.boxes) box.checked = this.all.checked;
      this.count();
    });
    list.root.addEventListener("change", (event) => {
      if (event.target.name === "selected") this.count();
    });
    form.addEventListener("submit", (event) => this.submit(event));
    this.count();
  }

  get boxes() {
    return [...this.list.root.querySelectorAll("input[name=selected]:not(:disabled)")];
  }

  count() {
    const boxes = this.boxes;
    const chosen = boxes.filter((box) => box.checked).length;
    this.form.hidden = boxes.length === 0 && !this.results.hasChildNodes();
    this.counted.textContent = chosen ? interpolate(gettext("%(count)s selected"), { count: chosen }) : "";
    this.form.classList.toggle("idle", chosen === 0 && !this.results.hasChildNodes());
    this.all.checked = chosen > 0 && chosen === boxes.length;
    this.all.indeterminate = chosen > 0 && chosen < boxes.length;
    for (const button of this.form.querySelectorAll("button")) button.disabled = chosen === 0;
  }

  async submit(event) {
    event.preventDefault();
    if (this.isBusy) return;
    this.isBusy = true;
    const answer = await post(this.form.action, new URLSearchParams(new FormData(this.form, event.submitter)));
    this.isBusy = false;
    const results = answer.results ?? [];
    this.results.replaceChildren(...results.map(line));
    if (!answer.ok) this.results.append(element("li", { class: "bad" }, visible(answer.message)));
    for (const { id, is_done: isDone } of results) {
      const card = this.list.cards.get(id);
      const box = card?.root.querySelector("input[name=selected]");
      if (isDone && box) box.checked = false;
    }
    if (answer.ok) this.form.elements.reason.value = "";
    this.count();
    this.decided();
  }
}

function line({ what, message, is_done: isDone }) {
  return element("li", { class: isDone ? "good" : "bad" }, isDone ? visible(message) : visible(`${what}: ${message}`));
}
