// Rows as a table: the Markdown table of a query's result, and CSV.

import { gettext, interpolate } from "../i18n.js";
import { element, plain, setText } from "../text.js";
import { jsonOf } from "../tool_forms.js";
import { highlightIn } from "../code.js";
import { LongText } from "../long_text.js";

const MOST_ROWS = 500;
const MOST_COLUMNS = 50;
const CELL_CHARACTERS = 500;

export const tableForm = {
  isWhole: true,

  input(input, { code: [field, language], others }) {
    if (typeof input?.[field] !== "string") return null;
    const shown = element("pre", { tabindex: "0" });
    const block = element("div", {}, shown);
    new LongText(shown).set(input[field]);
    highlightIn(shown, language);
    const { [field]: _, ...rest } = input;
    return [block, ...others(rest)];
  },

  output(text, { others }) {
    const result = jsonOf(text);
    const table = tableOf(markdownRows(typeof result?.table === "string" ? result.table : text));
    if (table === null) return null;
    const { table: _, success: __, ...rest } = result ?? {};
    return [table, ...others(rest)];
  },
};

/** Return the element of rows, the first of which is the heading, or null. */
export function tableOf(rows) {
  if (rows === null || rows.length === 0) return null;
  const [heading, ...others] = rows;
  const head = element("tr", {}, ...heading.slice(0, MOST_COLUMNS).map((text) => cell("th", text)));
  const body = element("tbody");
  for (const row of others.slice(0, MOST_ROWS)) {
    body.append(element("tr", {}, ...row.slice(0, MOST_COLUMNS).map((text) => cell("td", text))));
  }
  const table = element("table", { class: "plain" }, element("thead", {}, head), body);
  const place = element("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": gettext("Table") }, table);
  const cut = cutText(others.length - MOST_ROWS, heading.length - MOST_COLUMNS);
  return element("div", {}, place, ...(cut ? [element("p", { class: "quiet" }, cut)] : []));
}

function cutText(rows, columns) {
  if (rows > 0 && columns > 0) return interpolate(gettext("Not shown: %(rows)s more rows, %(columns)s more columns."), { rows, columns });
  if (rows > 0) return interpolate(gettext("Not shown: %(rows)s more rows."), { rows });
  return columns > 0 ? interpolate(gettext("Not shown: %(columns)s more columns."), { columns }) : "";
}

function cell(tag, text) {
  const made = element(tag, tag === "th" ? { scope: "col" } : {});
  const isNumber = /^-?[\d,]*\.?\d+(e[+-]?\d+)?%?$/i.test(text);
  if (isNumber && tag === "td") made.className = "number";
  setText(made, text.length > CELL_CHARACTERS ? `${text.slice(0, CELL_CHARACTERS)}…` : text);
  return made;
}

/** Return the rows of a Markdown table with `|` at both ends of each line, or null. */
export function markdownRows(text) {
  const lines = plain(text).trim().split("\n");
  if (lines.length < 2 || !/^\|[\s:|-]+\|$/.test(lines[1].trim())) return null;
  const rows = [];
  for (const [number, line] of lines.entries()) {
    const inner = /^\|(.*)\|$/.exec(line.trim())?.[1];
    if (inner === undefined) return null;
    if (number !== 1) rows.push(inner.split(/(?<!\\)\|/).map((part) => part.trim().replaceAll("\\|", "|")));
  }
  return rows;
}

/** Return the rows of CSV, or null if a quotation mark is not closed or a row has one cell only. */
export function csvRows(text, separator = ",") {
  const rows = [];
  let row = [];
  let cellText = "";
  let isQuoted = false;
  for (let at = 0; at < text.length && rows.length <= MOST_ROWS + 1; at++) {
    const sign = text[at];
    if (isQuoted) {
      if (sign !== '"') cellText += sign;
      else if (text[at + 1] === '"') cellText += text[++at];
      else isQuoted = false;
    } else if (sign === '"' && cellText === "") {
      isQuoted = true;
    } else if (sign === separator) {
      row.push(cellText);
      cellText = "";
    } else if (sign === "\n") {
      row.push(cellText.replace(/\r$/, ""));
      if (row.length > 1 || row[0] !== "") rows.push(row);
      row = [];
      cellText = "";
    } else {
      cellText += sign;
    }
  }
  if (isQuoted) return null;
  if (cellText !== "" || row.length > 0) rows.push([...row, cellText]);
  return rows.length > 1 && rows[0].length > 1 ? rows : null;
}
