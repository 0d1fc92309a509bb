// What an agent read from a file: a table for CSV, a picture, a tree for JSON, or code.

import { codeBlock } from "../code.js";
import { gettext, interpolate } from "../i18n.js";
import { appendText, element, visible } from "../text.js";
import { jsonOf } from "../tool_forms.js";
import { jsonTree } from "./json.js";
import { csvRows, tableOf } from "./table.js";

const OUTPUTS = /^(?:\/sandbox\/)?outputs\//;
const PICTURES = new Set(["png", "jpg", "jpeg", "webp", "gif"]);
const SEPARATORS = new Map([["csv", ","], ["tsv", "\t"]]);
const NUMBERED = /^ *\d+ \| ?/;
const LANGUAGES = new Map(Object.entries({
  c: "c", css: "css", go: "go", html: "xml", ini: "ini", java: "java", js: "javascript", json: "json",
  md: "markdown", mjs: "javascript", py: "python", r: "r", rb: "ruby", rs: "rust", sh: "bash", sql: "sql",
  toml: "ini", ts: "typescript", xml: "xml", yaml: "yaml", yml: "yaml",
}));

export const fileForm = {
  isWhole: true,

  output(text, { input, runUrl, others }) {
    const path = String(input?.path ?? input?.file_path ?? "");
    const ending = path.split(".").pop().toLowerCase();
    if (PICTURES.has(ending)) return picture(path, runUrl);
    const result = jsonOf(text);
    if (typeof result?.content !== "string") return null;
    const { content, path: _, ...rest } = result;
    return [shown(content, ending), ...others(rest)];
  },
};

function shown(content, ending) {
  const lines = content.split("\n");
  const isNumbered = lines.every((line) => NUMBERED.test(line));
  const text = isNumbered ? lines.map((line) => line.replace(NUMBERED, "")).join("\n") : content;
  const separator = SEPARATORS.get(ending);
  const table = separator ? tableOf(csvRows(text, separator)) : null;
  if (table) return table;
  const value = ending === "json" ? jsonOf(text) : null;
  if (value !== null) return jsonTree(value);
  const block = codeBlock(LANGUAGES.get(ending));
  appendText(block.inner, content);
  block.end();
  return block.outer;
}

/** Show a picture in the outputs, which the server encodes again. */
function picture(path, runUrl) {
  if (!OUTPUTS.test(path) || /[\n\r]/.test(path)) return null;
  const name = path.replace(OUTPUTS, "").split("/").map(encodeURIComponent).join("/");
  if (/(^|\/)\.{1,2}(\/|$)/.test(name)) return null;
  const image = element("img", { src: `${runUrl}pictures/${name}`, alt: visible(path), loading: "lazy", class: "picture" });
  image.addEventListener("error", () => image.replaceWith(element("span", { class: "quiet" }, interpolate(gettext("Picture: %(name)s"), { name: visible(path) }))));
  return [image];
}
