// Builds elements from the tree of agents/web/markdown.py: [tag, attributes, child, …].
// The allowed tags are repeated here: no other tag becomes an element, even if the server sends it.

import { codeBlock } from "./code.js";
import { gettext, interpolate } from "./i18n.js";
import { appendText, element, visible } from "./text.js";

const TAGS = new Set([
  "p", "br", "hr", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code",
  "em", "strong", "s", "a", "img", "table", "thead", "tbody", "tr", "th", "td",
]);
const SIDES = new Set(["left", "center", "right"]);
const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);

/** Fill `node` with `trees`. The run's files have addresses that start with `runUrl`. */
export function showMarkdown(node, trees, runUrl) {
  node.replaceChildren();
  node.classList.add("markdown");
  for (const tree of trees) add(node, tree, runUrl);
}

function add(parent, tree, runUrl) {
  if (typeof tree === "string") {
    appendText(parent, tree);
    return;
  }
  const [tag, attributes, ...children] = tree;
  if (!TAGS.has(tag)) {
    for (const child of children) add(parent, child, runUrl);
    return;
  }
  const made = MAKERS[tag]?.(attributes, runUrl) ?? element(tag);
  const inner = made.inner ?? made;
  for (const child of children) add(inner, child, runUrl);
  parent.append(made.outer ?? made);
  made.end?.();
}

const MAKERS = {
  a: link,
  img: picture,
  ol: ({ start }) => element("ol", { start: Number.isInteger(start) ? start : null }),
  th: ({ align }) => cell("th", align),
  td: ({ align }) => cell("td", align),
  table() {
    const inner = element("table", { class: "plain" });
    return { inner, outer: element("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": gettext("Table") }, inner) };
  },
  pre({ info }) {
    const block = codeBlock(info);
    if (info) block.outer.prepend(element("div", { class: "label" }, visible(info)));
    return block;
  },
};

function cell(tag, align) {
  return element(tag, { align: SIDES.has(align) ? align : null });
}

/** Make a link that shows its host, as the browser parses the address. */
function link({ href }, runUrl) {
  if (href.startsWith(`${runUrl}files/`)) return element("a", { href, download: "" });
  let url;
  try {
    url = new URL(href);
  } catch {
    return element("span");
  }
  if (!PROTOCOLS.has(url.protocol)) return element("span");
  const inner = element("a", { href: url.href, rel: "noopener noreferrer nofollow", target: "_blank" });
  const outer = element("span", { class: "link" }, inner);
  const end = () => {
    const isSaid = [url.href, url.href.replace(/\/$/, "")].includes(inner.textContent) && !url.username;
    if (!isSaid) outer.append(element("span", { class: "host" }, ` (${visible(url.host || url.pathname)})`));
  };
  return { inner, outer, end };
}

/** Show a picture that the server has re-encoded, or its name if it is not available. */
function picture({ src, alt }, runUrl) {
  const text = visible(alt ?? "");
  const name = interpolate(gettext("Picture: %(name)s"), { name: text });
  if (!src.startsWith(`${runUrl}pictures/`)) return element("span", {}, name);
  const shown = element("img", { src, alt: text, loading: "lazy", class: "picture" });
  shown.addEventListener("error", () => shown.replaceWith(element("span", { class: "quiet" }, name)));
  return shown;
}
