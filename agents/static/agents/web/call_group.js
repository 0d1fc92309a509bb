// Consecutive tool calls, folded into one line such as "Read 6 files, ran 3 commands, 1 failed".

import { gettext, interpolate } from "./i18n.js";
import { element } from "./text.js";
import { wordsOf } from "./tool_forms.js";

/** Fewer calls in sequence are not grouped. */
export const LEAST = 3;

const ACTIVE = new Set(["queued", "running", "waiting"]);

export class CallGroup {
  constructor() {
    this.cards = [];
    this.root = null;
    this.isOver = false;
    // Whether the reader has opened or closed the group.
    this.isChosen = false;
  }

  /** Add a card that is in the page, after the other cards of the group. */
  add(card) {
    this.cards.push(card);
    card.changed = () => this.update();
    if (this.root) this.inside.append(card.root);
    else this.form();
    this.update();
  }

  /** Build the group if it has enough cards. */
  form() {
    const cards = this.shown();
    const hasFocus = cards.some(({ root }) => root.contains(document.activeElement));
    if (cards.length < LEAST || hasFocus) return;
    this.words = element("span", { class: "what" });
    this.failed = element("span", { class: "status", "data-status": "failed", hidden: "" });
    this.inside = element("div", { class: "inside" });
    const summary = element("summary", {}, this.words, this.failed);
    summary.addEventListener("click", () => {
      this.isChosen = true;
    });
    this.root = element("details", { class: "fold group" }, summary, this.inside);
    cards[0].root.before(this.root);
    this.inside.append(...cards.map(({ root }) => root));
  }

  /** Note that something else follows the calls. */
  close() {
    this.isOver = true;
    this.update();
  }

  update() {
    if (!this.root) return;
    const cards = this.shown();
    this.words.textContent = inWords(cards);
    const failed = cards.filter(({ status }) => status.dataset.status === "failed").length;
    this.failed.textContent = failed ? interpolate(gettext("%(count)s failed"), { count: failed }) : "";
    this.failed.hidden = failed === 0;
    this.root.hidden = cards.length === 0;
    const isActive = cards.some(({ status }) => ACTIVE.has(status.dataset.status));
    if (!this.isChosen) this.root.open = isActive || !this.isOver;
  }

  /** Return the cards that the page still has: a repeated model call removes its cards. */
  shown() {
    return this.cards.filter(({ root }) => root.isConnected);
  }
}

/** Return what the calls did, in the order of the first call of each kind. */
function inWords(cards) {
  const counts = new Map();
  for (const { tool } of cards) counts.set(tool, (counts.get(tool) ?? 0) + 1);
  const parts = [...counts].map(([tool, count]) => {
    const [once, several] = wordsOf(tool);
    return count === 1 ? once : several.replace("#", () => count);
  });
  const text = parts.join(", ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
