// Shows the first page of each PDF in the files of a run. The picture links to all pages.

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
  const alt = `First page of ${visible(name)}`;
  const image = element("img", { src: panel.dataset.pageUrl + query, alt, loading: "lazy" });
  const link = element("a", { href: panel.dataset.browseUrl + query, class: "thumbnail" }, image);
  image.addEventListener("error", () => image.replaceWith(`Preview ${visible(name)}`));
  return link;
}
