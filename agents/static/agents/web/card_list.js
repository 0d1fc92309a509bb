// A list of requests that updates while the user works in it. Cards under the pointer do not move,
// and typed text stays.

import { Card } from "./card.js";
import { cardElement } from "./cards.js";
import { showTimes } from "./clock.js";
import { gettext, interpolate } from "./i18n.js";

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

  /** The cards in the order of the page, without those whose decision can still be undone. */
  get shown() {
    const cards = [...this.root.children].map((node) => this.cards.get(node.dataset.approval));
    return cards.filter((card) => card && !card.isHeld);
  }

  adopt(root) {
    const card = new Card(root, {
      decided: (decided, message) => this.decided(decided, message),
      held: (held) => this.held(held),
      returned: () => this.on.changed(),
    });
    this.cards.set(card.id, card);
    return card;
  }

  /** Hide a card: its decision waits for its time to undo. */
  held(card) {
    this.leaveFocus(card);
    // The card hides itself after this call.
    queueMicrotask(() => this.on.changed());
  }

  /** Move the focus from a card that goes away to the next one. */
  leaveFocus(card) {
    if (card.root.contains(document.activeElement)) this.neighbour(card)?.root.focus({ preventScroll: true });
  }

  decided(card, message) {
    this.leaveFocus(card);
    this.remove(card);
    this.on.decided(message);
    this.on.changed();
  }

  neighbour(card) {
    const shown = [...this.root.children];
    const place = shown.indexOf(card.root);
    const usable = (node) => {
      const other = this.cards.get(node.dataset.approval);
      return other && !other.isHeld && other !== card ? other : null;
    };
    const after = shown.slice(place + 1).map(usable).find(Boolean);
    return after ?? shown.slice(0, place).reverse().map(usable).find(Boolean);
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
        // The server answers a held decision, also if the request has ended meanwhile.
        if (card.isHeld) continue;
        if (!order.includes(card.id)) this.leave(card, ended[card.id]);
        else if (fresh.has(card.id)) this.renew(card, fresh.get(card.id));
      }
      this.place(order, fresh);
    });
    showTimes(this.root);
    this.on.changed();
  }

  leave(card, how) {
    if (!card.isDirty) {
      this.remove(card);
    } else if (!card.isOver) {
      const values = { outcome: how ?? gettext("This request is no longer in the list") };
      card.end(interpolate(gettext("%(outcome)s. Your text stays here until you leave the page."), values));
    }
  }

  renew(card, data) {
    if (card.root.dataset.stamp === data.stamp) return;
    if (card.isDirty) {
      card.root.dataset.stamp = data.stamp;
      card.tell(data.approvals || data.refusal || gettext("This request has changed."));
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
