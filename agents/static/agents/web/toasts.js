// Short messages at the lower edge of the page. A message can offer to undo an action that has not been sent yet.

import { gettext } from "./i18n.js";
import { element, setText } from "./text.js";

const SHOWN_MILLISECONDS = 6000;
/** The time to undo an action. `.toast-time` in app.css shows it. */
const UNDO_MILLISECONDS = 5000;

const place = element("div", { class: "toasts", role: "status", "aria-live": "polite" });
document.body.append(place);

/** The delayed actions, oldest first. */
const delayed = new Set();

/** Show `text`. A problem stays until the user closes it. */
export function toast(text, { isProblem = false } = {}) {
  const shown = build(text, isProblem);
  const close = button(gettext("Close"), () => shown.remove());
  shown.append(close);
  if (!isProblem) setTimeout(() => shown.remove(), SHOWN_MILLISECONDS);
}

/**
 * Show `text` and a button to undo, and call `act` when the time is over.
 *
 * If the user undoes the action, calls `undone` instead. If the user closes the message, leaves the page or switches to
 * another tab, calls `act` at once: it has to send with `keepalive`. `now` is the label of the button that closes it.
 */
export function delay(text, { act, undone, now = gettext("Send now") }) {
  const shown = build(text, false);
  const action = { finish, undo };
  function end() {
    clearTimeout(timer);
    shown.remove();
    return delayed.delete(action);
  }
  function finish() {
    if (end()) act();
  }
  function undo() {
    if (end()) undone();
  }
  const timer = setTimeout(finish, UNDO_MILLISECONDS);
  delayed.add(action);
  const time = element("span", { class: "toast-time", "aria-hidden": "true" });
  shown.append(button(gettext("Undo"), undo, "primary"), button(now, finish), time);
}

function build(text, isProblem) {
  const words = element("span", { class: "toast-text" });
  setText(words, text);
  const shown = element("div", { class: isProblem ? "toast problem" : "toast" }, words);
  place.append(shown);
  return shown;
}

function button(label, act, kind = null) {
  const made = element("button", { type: "button", class: kind }, label);
  made.addEventListener("click", act);
  return made;
}

function finishAll() {
  for (const action of [...delayed]) action.finish();
}

// When the user leaves, `beforeunload` is early enough for the next page to show the result.
addEventListener("beforeunload", finishAll);
addEventListener("pagehide", finishAll);
// A phone may end a hidden page without telling it.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) finishAll();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "z" || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest?.("textarea, select, dialog, input:not([type=checkbox]):not([type=radio])")) return;
  const latest = [...delayed].at(-1);
  if (!latest) return;
  event.preventDefault();
  latest.undo();
});
