// Blocks of code: colours for known languages, and a button that copies the text.

import { gettext } from "./i18n.js";
import { appendText, element } from "./text.js";

// Longer code stays plain: colouring it would block the page.
const MOST_CHARACTERS = 20_000;
const CLASS = /^hljs-[a-z_-]+$/;
const COPIED_MILLISECONDS = 1500;

/** Return `{outer, inner, end}` for a block: add the text to `inner`, then call `end()`. */
export function codeBlock(info) {
  const inner = element("pre", { tabindex: "0" });
  const outer = element("div", { class: "code-block" }, inner);
  const language = String(info ?? "").trim().split(/\s/)[0].toLowerCase();
  const end = () => {
    addCopyButton(outer, inner);
    highlightIn(inner, language);
  };
  return { inner, outer, end };
}

/** Colour the text of `node`, if the language is known. The text does not change. */
export async function highlightIn(node, language) {
  const text = node.textContent;
  if (!language || text.length > MOST_CHARACTERS) return;
  const { highlight, isKnown } = await import("../vendor/highlight.js");
  // The text may have changed during the import.
  if (!isKnown(language) || node.textContent !== text) return;
  const shown = element("code");
  addTree(shown, highlight(language, text));
  node.replaceChildren(shown);
}

/** Append the nodes of a tree. Only spans with classes of the highlighter are created. */
function addTree(parent, { children }) {
  for (const child of children) {
    if (child.type === "text") {
      addMarked(parent, child.value);
      continue;
    }
    const names = (child.properties?.className ?? []).filter((name) => CLASS.test(name));
    const span = element("span", { class: names.join(" ") });
    addTree(span, child);
    parent.append(span);
  }
}

/** Append text; the code points of hidden characters get their style again. */
function addMarked(parent, text) {
  for (const part of text.split(/(⟨U\+[0-9A-F]{4,6}⟩)/)) {
    if (/^⟨U\+/.test(part)) parent.append(element("span", { class: "code-point" }, part));
    else appendText(parent, part);
  }
}

/** Add a button that copies the text of `node`. Without a secure connection there is no clipboard. */
export function addCopyButton(holder, node) {
  if (!navigator.clipboard) return;
  const button = element("button", { type: "button", class: "copy" }, gettext("Copy"));
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(node.textContent);
      button.textContent = gettext("Copied");
    } catch (error) {
      console.warn("the text could not be copied", error);
      button.textContent = gettext("Not allowed");
    }
    setTimeout(() => {
      button.textContent = gettext("Copy");
    }, COPIED_MILLISECONDS);
  });
  holder.append(button);
}
