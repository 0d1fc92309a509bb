// Builds the elements of a request from the JSON of agents/web/cards.py, like templates/web/card.html.
// The server sends hidden characters as code points, or as escapes in texts that can be edited.

import { gettext, interpolate, ngettext } from "./i18n.js";
import { reviewElement } from "./review.js";
import { element, withNodes } from "./text.js";

const HINT = gettext("\\u{…} is an invisible character.");

/** `page` has `csrf`, `back` (a query), `isListed` (can be selected) and `runUrl` (of the current page). */
export function cardElement(card, page) {
  const form = (...children) => element(
    "form", { class: "decide", method: "post", action: card.decide_url },
    hiddenInput("csrfmiddlewaretoken", page.csrf),
    hiddenInput("digest", card.digest), hiddenInput("back", page.back), ...children,
  );
  const isOpen = card.review !== null;
  return element(
    "article",
    {
      class: "approval", id: `request-${card.id}`, "data-approval": card.id, "data-digest": card.digest,
      "data-stamp": card.stamp, "data-kind": card.kind, tabindex: "-1", "aria-labelledby": `title-${card.id}`,
    },
    head(card, page),
    ...paragraph("approval-why", card.prompt),
    ...paragraph("approval-why", card.agents_reason && interpolate(gettext("The agent’s reason: %(reason)s"), { reason: card.agents_reason })),
    ...paragraph("approval-needed", card.approvals),
    ...paragraph("approval-why", card.outcome?.reason && interpolate(gettext("Reason given: %(reason)s"), card.outcome)),
    isOpen ? reviewElement(card.review) : element(
      "p", { class: "approval-closed" }, element("a", { class: "open-card", href: card.url }, gettext("Show the request")),
    ),
    ...(card.outcome?.edited ? [edited(card.outcome.edited)] : []),
    ...(isOpen && card.is_proposal ? [sources(card)] : []),
    ...paragraph("note approval-refusal", card.refusal),
    ...(isOpen && card.is_pending ? [actions(card, form)] : []),
    element("p", { class: "note problem approval-problem", role: "alert", hidden: "" }),
  );
}

function head(card, { isListed, runUrl }) {
  const tool = element("code", {}, card.tool);
  const facts = element(
    "p", { class: "approval-facts" },
    ...withNodes(gettext("run of %(path)s · for %(owner)s · requested %(time)s"), {
      path: element("strong", {}, card.path),
      owner: card.owner,
      time: element("time", { datetime: card.asked_at, "data-clock": "since" }, card.asked_ago),
    }),
  );
  if (card.expires_at) {
    const attributes = { class: "approval-expiry", datetime: card.expires_at, "data-clock": "until" };
    facts.append(" · ", element("time", attributes, card.expires_in));
  }
  if (card.run_url !== runUrl) facts.append(" · ", element("a", { class: "run-link", href: card.run_url }, gettext("Open the run")));
  const made = element("header", { class: "approval-head" });
  if (isListed && card.may_select) {
    made.append(element(
      "label", { class: "approval-select" },
      element("input", { type: "checkbox", name: "selected", value: `${card.id}:${card.digest}`, form: "several" }),
      element("span", { class: "aside" }, interpolate(gettext("Select %(tool)s of %(owner)s"), card)),
    ));
  }
  made.append(element("h2", { id: `title-${card.id}` }, ...(card.is_pending ? withNodes(gettext("Allow %(tool)s?"), { tool }) : [tool])));
  if (card.outcome) {
    made.append(element("span", { class: "status", "data-status": card.outcome.status }, card.outcome.text));
  }
  made.append(facts);
  return made;
}

function edited(text) {
  return element(
    "div", { class: "approval-edited" },
    element("div", { class: "label" }, gettext("Approved with these changes")), element("pre", { tabindex: "0" }, text),
  );
}

function sources(card) {
  const count = card.sources.length;
  const summary = interpolate(ngettext(
    "Proposed in step %(step)s, after reading %(count)s source that others may have written",
    "Proposed in step %(step)s, after reading %(count)s sources that others may have written",
    count,
  ), { step: card.step, count });
  const lines = card.sources.map(({ step, tool, source }) => element(
    "li", {},
    ...(tool ? withNodes(gettext("step %(step)s: %(tool)s %(source)s"), { step, tool: element("code", {}, tool), source }) : [source]),
  ));
  return element("details", { class: "approval-sources" }, element("summary", {}, summary), element("ul", {}, ...lines));
}

function actions(card, form) {
  const offers = (decision) => decision in card.blocked;
  const isBlocked = (decision) => card.blocked[decision] !== "";
  const made = element("div", { class: "actions" });
  if (offers("approve")) made.append(form(decideButton("approve", gettext("Approve"), "primary", isBlocked("approve"))));
  if (offers("edit")) {
    if (isBlocked("edit")) made.append(disabledButton(gettext("Edit…")));
    else made.append(...card.editors.map((editor, place) => editPanel(card, editor, place, form)));
  }
  if (offers("reject")) {
    const area = element("textarea", { name: "reason", rows: "2", maxlength: "10000" });
    made.append(panel("reject", gettext("Reject…"), form(
      element("label", {}, gettext("Reason (the agent receives it)"), area), decision("reject", gettext("Reject"), "danger"),
    )));
  }
  if (offers("respond")) {
    if (isBlocked("respond")) made.append(disabledButton(gettext("Answer instead…")));
    else made.append(respondPanel(form));
  }
  if (card.grants.length > 0) made.append(alwaysPanel(card, form));
  return made;
}

function editPanel(card, editor, place, form) {
  const isLast = place === card.editors.length - 1;
  const title = isLast ? (place === 0 ? gettext("Edit…") : gettext("Edit as JSON…")) : gettext("Edit the content…");
  const area = element("textarea", {
    class: "code", name: editor.kind === "json" ? "input" : "content", rows: "10", spellcheck: "false",
  });
  area.defaultValue = editor.text;
  return panel("edit", title, form(
    element("label", {}, editor.label, area),
    ...(editor.has_escapes ? [element("p", { class: "quiet" }, HINT)] : []),
    decision("edit", card.save_label, "primary"),
  ));
}

function respondPanel(form) {
  const area = element("textarea", { name: "reason", rows: "4" });
  return panel("respond", gettext("Answer instead…"), form(
    element("label", {}, gettext("The tool does not run. The agent receives this text as the result."), area),
    decision("respond", gettext("Answer"), "primary"),
  ));
}

function alwaysPanel(card, form) {
  const choices = card.grants.flatMap((grant, place) => {
    const choice = element("label", { class: "choice" },
      element("input", { type: "radio", name: "match", value: grant.match, checked: place === 0 ? "" : null }),
      ` ${grant.label}`);
    if (!grant.pattern_label) return [choice];
    const input = element("input", {
      class: "code", name: `pattern_${grant.match}`, value: grant.pattern, spellcheck: "false",
    });
    return [choice, element("label", { class: "choice-pattern" }, grant.pattern_label, input)];
  });
  const whose = [["owner", card.owner], ["thread", gettext("this conversation only")], ["everybody", gettext("everybody")]];
  const number = (name, value, attributes) => element("input", { type: "number", name, value, min: "1", ...attributes });
  return panel("always", gettext("Always allow…"), form(
    element("fieldset", {}, element("legend", {}, gettext("Approve this call, and allow such calls without a request")), ...choices),
    element(
      "div", { class: "terms" },
      element("label", {}, gettext("In the runs of"),
        element("select", { name: "whose" }, ...whose.map(([value, label]) => element("option", { value }, label)))),
      element("label", {}, gettext("Days"), number("days", "7", { max: "90" })),
      element("label", {}, gettext("Maximum uses"), number("max_uses", "100")),
    ),
    element("label", {}, gettext("Reason (stored with the grant)"), element("input", { name: "reason", maxlength: "1000" })),
    decision("always", gettext("Approve and always allow"), "primary"),
  ));
}

function panel(name, title, form) {
  return element("details", { class: "panel", "data-panel": name }, element("summary", {}, title), form);
}

function decision(value, label, kind) {
  return element("div", {}, decideButton(value, label, kind));
}

function decideButton(value, label, kind, isDisabled = false) {
  return element("button", { class: kind, name: "decision", value, disabled: isDisabled ? "" : null }, label);
}

function disabledButton(label) {
  return element("button", { type: "button", disabled: "" }, label);
}

function hiddenInput(name, value) {
  return element("input", { type: "hidden", name, value });
}

function paragraph(name, text) {
  return text ? [element("p", { class: name }, text)] : [];
}
