// Loads the Markdown of a run's texts, in batches, by the numbers of their events.

import { showMarkdown } from "./markdown.js";

const AT_ONCE = 50;
const GATHER_MILLISECONDS = 30;
// A text without any of these looks the same with and without Markdown.
const MARKED = /[*_`#[\]|~\\&<>!+-]|\d[.)]|\n/;

export class RenderedTexts {
  /** Calls `changed()` after it has shown some texts. */
  constructor(runUrl, changed = () => {}) {
    this.runUrl = runUrl;
    this.changed = changed;
    this.waiting = new Map();
    this.timer = null;
  }

  /** Render the text of the event `seq` in `node`, which already shows `text`. */
  want(seq, text, node) {
    if (!MARKED.test(text)) return;
    this.waiting.set(seq, node);
    this.timer ??= setTimeout(() => this.load(), GATHER_MILLISECONDS);
  }

  async load() {
    while (this.waiting.size > 0) {
      const asked = [...this.waiting.keys()].sort((a, b) => a - b).slice(0, AT_ONCE);
      const texts = await this.fetch(asked);
      if (texts === null) break;
      const answered = Object.keys(texts).map(Number);
      for (const seq of answered) {
        const node = this.waiting.get(seq);
        if (node && texts[seq]) showMarkdown(node, texts[seq], this.runUrl);
      }
      // The server answers in order and may stop early. A number before its last one has no text.
      const last = Math.max(...answered, -1);
      for (const seq of asked) if (answered.length === 0 || seq <= last) this.waiting.delete(seq);
      this.changed();
    }
    this.timer = null;
  }

  /** Return the trees by seq, or null if the request failed. Then the texts stay unrendered. */
  async fetch(asked) {
    try {
      const response = await fetch(`${this.runUrl}said/?seq=${asked}`, { headers: { accept: "application/json" } });
      if (response.ok && !response.redirected) return (await response.json()).texts;
    } catch (error) {
      console.warn("the texts could not be rendered", error);
    }
    this.waiting.clear();
    return null;
  }
}
