// Builds the review of a pending call from the JSON of agents/review, with the same elements as
// templates/web/review.html. The server sends hidden characters as code points.

import { gettext, interpolate, pgettext } from "./i18n.js";
import { element } from "./text.js";

const STATUS = {
  new: gettext("new file"),
  excerpt: gettext("texts only"),
  changed: gettext("changed"),
  deleted: gettext("deleted"),
  unchanged: gettext("unchanged"),
};
const SEVERITIES = {
  danger: gettext("danger"),
  warning: gettext("warning"),
  note: pgettext("severity", "note"),
  error: gettext("error"),
};
const SIGNS = { context: " ", added: "+", removed: "-" };
const WRAPPED = { added: "ins", removed: "del" };

/** Return the element of a review. */
export function reviewElement(review) {
  return element(
    "section",
    { class: "review" },
    element("h3", { class: "review-title" }, review.title),
    ...notes(review.notes),
    ...review.sections.map((section) =>
      element("div", { class: "review-part", "data-kind": section.kind }, ...parts(section))),
  );
}

function parts(section) {
  switch (section.kind) {
    case "diff":
      return diff(section);
    case "command":
      return [facts(section.facts), ...notes(section.notes), block(section.lines, section.language)];
    case "sql":
      return sql(section);
    default:
      return fields(section);
  }
}

function diff(section) {
  const head = element(
    "p",
    { class: "review-head" },
    element("code", {}, section.path), " ",
    element("span", { class: "review-status", "data-status": section.status }, STATUS[section.status] ?? section.status), " ",
    element("span", { class: "review-count" }, `+${section.added} −${section.removed}`),
  );
  const made = [head, ...notes(section.notes)];
  if (section.findings.length > 0) {
    made.push(element("ul", { class: "review-findings" }, ...section.findings.map(finding)));
  }
  if (section.rows.length > 0) {
    const body = element("tbody");
    for (const each of section.rows) body.append(row(each));
    const attributes = { class: "diff", role: "region", "aria-label": gettext("Changes"), tabindex: "0" };
    made.push(element("div", attributes, element("table", {}, body)));
  }
  return made;
}

function finding({ line, severity, description }) {
  const text = line ? interpolate(gettext("line %(line)s: %(description)s"), { line, description }) : description;
  return element("li", { "data-severity": severity }, element("strong", {}, SEVERITIES[severity] ?? severity), ` ${text}`);
}

function row({ kind, old_line, new_line, spans: pieces, no_newline, folded }) {
  if (kind === "gap") {
    const cell = element("td", { class: "diff-gap", colspan: "4" }, interpolate(gettext("⋯ %(count)s unchanged lines"), { count: folded }));
    return element("tr", { class: "diff-row gap" }, cell);
  }
  if (kind === "cut") {
    const cell = element("td", { class: "diff-gap", colspan: "4" }, ...spans(pieces));
    return element("tr", { class: "diff-row cut" }, cell);
  }
  const wrap = WRAPPED[kind];
  const text = element("td", { class: "diff-text" }, ...(wrap ? [element(wrap, {}, ...spans(pieces))] : spans(pieces)));
  if (no_newline) text.append(element("span", { class: "diff-end" }, gettext("no line break at the end")));
  return element(
    "tr",
    { class: `diff-row ${kind}` },
    element("td", { class: "diff-number" }, String(old_line ?? "")),
    element("td", { class: "diff-number" }, String(new_line ?? "")),
    element("td", { class: "diff-sign" }, SIGNS[kind]),
    text,
  );
}

function sql(section) {
  const connection = section.connection ? [facts([{ name: gettext("Database"), value: section.connection }])] : [];
  const written = block(section.lines, "sql");
  const shown = section.formatted.length === 0
    ? [written]
    : [
        block(section.formatted, "sql"),
        element("details", { class: "review-written" }, element("summary", {}, gettext("Original statement")), written),
      ];
  return [...connection, ...notes(section.notes), ...shown];
}

function fields(section) {
  const list = element("dl", { class: "review-fields" });
  for (const field of section.fields) {
    list.append(element("dt", {}, field.name), element("dd", {}, block(field.lines, "")));
  }
  return [element("p", { class: "review-head" }, section.title), ...notes(section.notes), list];
}

function facts(list) {
  return element(
    "dl",
    { class: "review-facts" },
    ...list.map(({ name, value }) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
}

function notes(list) {
  return list.map(({ text, severity }) => element("p", { class: "review-note", "data-severity": severity }, text));
}

function block(lines, language) {
  const made = element("pre", { class: "review-block", "data-language": language || null, tabindex: "0" });
  lines.forEach((line, number) => {
    if (number > 0) made.append("\n");
    made.append(element("span", { class: "review-line" }, ...spans(line)));
  });
  return made;
}

function spans(list) {
  return list.map(({ text, marks, title }) =>
    marks.length === 0
      ? text
      : element("mark", { class: ["mark", ...marks.map((mark) => `mark-${mark}`)].join(" "), title: title || null }, text));
}
