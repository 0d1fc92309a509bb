// Shows the output of agents and tools as plain text.
// A test compares these ranges with those of agents/hidden_text.py.

const HIDDEN_RANGES = [
  [0x00, 0x08], [0x0b, 0x1f], [0x7f, 0x9f], [0xad, 0xad], [0x34f, 0x34f], [0x600, 0x605],
  [0x61c, 0x61c], [0x6dd, 0x6dd], [0x70f, 0x70f], [0x115f, 0x1160], [0x17b4, 0x17b5],
  [0x180b, 0x180e], [0x200b, 0x200f], [0x2028, 0x202e], [0x2060, 0x206f], [0x2800, 0x2800],
  [0x3164, 0x3164], [0xd800, 0xdfff], [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff9, 0xfffb],
  [0xe0000, 0xe01ef],
];
const hex = (code) => code.toString(16);
const HIDDEN = new RegExp(
  `[${HIDDEN_RANGES.map(([first, last]) => `\\u{${hex(first)}}-\\u{${hex(last)}}`).join("")}]`,
  "gu",
);

function codePoint(character) {
  return `⟨U+${hex(character.codePointAt(0)).toUpperCase().padStart(4, "0")}⟩`;
}

/** Return `text` with hidden characters as code points. */
export function visible(text) {
  return String(text).replace(HIDDEN, codePoint);
}

/** Append `text` to `node`, with hidden characters highlighted. */
export function appendText(node, text) {
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    node.append(text.slice(from, found.index));
    node.append(element("span", { class: "code-point" }, codePoint(found[0])));
    from = found.index + found[0].length;
  }
  node.append(text.slice(from));
}

/** Replace the content of `node` by `text`. */
export function setText(node, text) {
  node.replaceChildren();
  appendText(node, text);
}

/** Return a new element. Children are nodes or strings; strings become text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Return the parts of a translated text: texts, and nodes in the places of `%(name)s`. */
export function withNodes(text, nodes) {
  return text.split(/%\((\w+)\)s/).map((part, at) => (at % 2 ? nodes[part] : part));
}

/** Return a number in the format of the page's language. */
export function inDigits(number, options = {}) {
  return number.toLocaleString(document.documentElement.lang || "en", options);
}

/** Return a number of bytes in the largest unit, as Django does. */
export function inBytes(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.min(3, Math.floor(Math.log2(bytes) / 10));
  const digits = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  return `${inDigits(bytes / 1024 ** power, digits)} ${["B", "KB", "MB", "GB"][power]}`;
}

/** Return a value of a tool's input as readable text. */
export function plain(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
}
