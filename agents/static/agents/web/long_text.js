// Shows the start of a text, and the rest on request: a browser lays out a few pages quickly, but
// a megabyte slowly.

import { gettext, interpolate } from "./i18n.js";
import { appendText, element, inDigits, setText } from "./text.js";

const SHOWN = 20_000;
const MORE = 200_000;

export class LongText {
  /** `node` shows the text. The button is inserted after it. */
  constructor(node) {
    this.node = node;
    this.text = "";
    this.limit = SHOWN;
    this.shown = 0;
    this.button = null;
  }

  append(text) {
    this.text += text;
    this.show();
  }

  set(text) {
    this.text = text;
    this.shown = 0;
    setText(this.node, "");
    this.show();
  }

  show() {
    const until = cutAt(this.text, this.limit);
    if (until > this.shown) {
      appendText(this.node, this.text.slice(this.shown, until));
      this.shown = until;
    }
    const left = this.text.length - this.shown;
    if (left > 0 && !this.button) {
      this.button = element("button", { type: "button", class: "more" });
      this.button.addEventListener("click", () => this.more());
      this.node.after(this.button);
    }
    if (!this.button) return;
    this.button.hidden = left === 0;
    const label = left <= MORE ? gettext("Show all (%(count)s more characters)") : gettext("Show more (%(count)s characters left)");
    this.button.textContent = interpolate(label, { count: inDigits(left) });
  }

  more() {
    this.limit = this.shown + MORE;
    this.show();
  }
}

/** Return the position of the cut. It does not split a surrogate pair. */
function cutAt(text, limit) {
  if (text.length <= limit) return text.length;
  const code = text.charCodeAt(limit - 1);
  return code >= 0xd800 && code < 0xdc00 ? limit - 1 : limit;
}
