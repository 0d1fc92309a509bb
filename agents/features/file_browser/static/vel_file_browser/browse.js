// Colours the previewed text, or shows it as Markdown.

import { addCopyButton, highlightIn } from "../agents/web/code.js";
import { showMarkdown } from "../agents/web/markdown.js";
import "./pdf_pages.js";

const source = document.getElementById("source");
const tree = document.getElementById("markdown-tree");

if (tree) {
  const shown = document.getElementById("markdown");
  showMarkdown(shown, JSON.parse(tree.textContent), "");
  shown.hidden = false;
  source.hidden = true;
} else if (source) {
  source.parentElement.classList.add("code-block");
  addCopyButton(source.parentElement, source);
  highlightIn(source, source.dataset.language);
}
