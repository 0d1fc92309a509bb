// A list of requests that updates while the user works in it. Cards under the pointer do not move,
// and typed text stays.

import { Card } from "./card.js";
import { cardElement } from "./cards.js";
import { showTimes } from "./clock.js";

export class CardList {
  /** `page` as for `cardElement`. Calls `on.decided(message)`, and `on.changed()` if cards were added or removed. */
  constructor(root, page, on) {
    this.root = root;
    this.page = page;
    this.on = on;
    this.cards = new Map();
    this.pointer = null;
    for (const card of root.querySelectorAll(":scope > article")) this.adopt(card);
    addEventListener("pointermove", ({ clientX, clientY }) => {
      this.pointer = [clientX, clientY];
    }, { passive: true });
    root.addEventListener("click", (event) => this.openClosed(event));
  }

  get names() {
    return [...this.cards.values()].filter((card) => !card.isOver).map((card) => card.name);
  }

  /** The cards in the order of the page. */
  get shown() {
    return [...this.root.children].map((node) => this.cards.get(node.dataset.approval)).filter(Boolean);
  }

  adopt(root) {
    const card = new Card(root, { decided: (decided, message) => this.decided(decided, message) });
    this.cards.set(card.id, card);
    return card;
  }

  decided(card, message) {
    const next = this.neighbour(card);
    const hadFocus = card.root.contains(document.activeElement);
    this.remove(card);
    if (hadFocus) next?.root.focus({ preventScroll: true });
    this.on.decided(message);
    this.on.changed();
  }

  neighbour(card) {
    const shown = this.shown;
    const place = shown.indexOf(card);
    return shown[place + 1] ?? shown[place - 1];
  }

  remove(card) {
    card.root.remove();
    this.cards.delete(card.id);
  }

  /** Show the server's list: the IDs in `order`, new or changed `cards`, and how removed ones `ended`. */
  update({ order, cards, ended = {} }) {
    const fresh = new Map(cards.map((card) => [card.id, card]));
    this.keepInPlace(() => {
      for (const card of [...this.cards.values()]) {
        if (!order.includes(card.id)) this.leave(card, ended[card.id]);
        else if (fresh.has(card.id)) this.renew(card, fresh.get(card.id));
      }
      this.place(order, fresh);
    });
    showTimes(this.root);
    this.on.changed();
  }

  leave(card, how) {
    if (!card.isDirty) this.remove(card);
    else if (!card.isOver) card.end(`${how ?? "This request is no longer in the list"}. Your text stays here until you leave the page.`);
  }

  renew(card, data) {
    if (card.root.dataset.stamp === data.stamp) return;
    if (card.isDirty) {
      card.root.dataset.stamp = data.stamp;
      card.tell(data.approvals || data.refusal || "This request has changed.");
      return;
    }
    const isSelected = card.root.querySelector("input[name=selected]")?.checked;
    const hadFocus = card.root.contains(document.activeElement);
    const made = cardElement(data, this.page);
    card.root.replaceWith(made);
    this.adopt(made);
    const box = made.querySelector("input[name=selected]");
    if (box && isSelected) box.checked = true;
    if (hadFocus) made.focus({ preventScroll: true });
  }

  /** Add missing cards in their place, without moving existing ones. */
  place(order, fresh) {
    let before = null;
    for (const id of [...order].reverse()) {
      const there = this.cards.get(id);
      if (there) {
        before = there.root;
      } else if (fresh.has(id)) {
        const made = cardElement(fresh.get(id), this.page);
        this.root.insertBefore(made, before);
        this.adopt(made);
        before = made;
      }
    }
  }

  /** Change the list, then scroll so that the card in use keeps its position. */
  keepInPlace(change) {
    const anchor = this.anchor();
    const top = anchor?.getBoundingClientRect().top;
    change();
    if (anchor?.isConnected) scrollBy(0, anchor.getBoundingClientRect().top - top);
  }

  anchor() {
    const active = document.activeElement?.closest?.("article.approval");
    const isSeen = (card) => {
      const { top, bottom } = card.getBoundingClientRect();
      return bottom > 0 && top < innerHeight;
    };
    if (active && isSeen(active)) return active;
    const below = this.pointer && document.elementFromPoint(...this.pointer)?.closest("article.approval");
    return below ?? [...this.root.children].find(isSeen) ?? null;
  }

  async openClosed(event) {
    const link = event.target.closest("a.open-card");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const response = await fetch(`${link.href}?as=json`, { headers: { accept: "application/json" } });
    if (!response.ok || response.redirected) return;
    const data = await response.json();
    const card = this.cards.get(data.id);
    if (!card) return;
    const made = cardElement(data, this.page);
    card.root.replaceWith(made);
    this.adopt(made);
    showTimes(made);
    made.focus({ preventScroll: true });
  }
}
