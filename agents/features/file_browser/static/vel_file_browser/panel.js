// Shows the first page of each PDF in the files of a run. The picture links to all pages.

import { gettext, interpolate } from "../agents/web/i18n.js";
import { element, visible } from "../agents/web/text.js";

const MOST_PICTURES = 10;
const panel = document.getElementById("browse-files");

if (panel) {
  document.getElementById("run").addEventListener("run-summary", ({ detail: { outputs } }) => {
    const lines = document.getElementById("files").children;
    let left = MOST_PICTURES;
    outputs.files.forEach(({ name, path }, index) => {
      if (!path.toLowerCase().endsWith(".pdf") || left === 0) return;
      left -= 1;
      lines[index].append(firstPage(name, `?path=${encodeURIComponent(path)}`));
    });
  });
}

function firstPage(name, query) {
  const shown = { name: visible(name) };
  const alt = interpolate(gettext("First page of %(name)s"), shown);
  const image = element("img", { src: panel.dataset.pageUrl + query, alt, loading: "lazy" });
  const link = element("a", { href: panel.dataset.browseUrl + query, class: "thumbnail" }, image);
  image.addEventListener("error", () =>
    image.replaceWith(interpolate(gettext("Preview %(name)s"), shown)));
  return link;
}
