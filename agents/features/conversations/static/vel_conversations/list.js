// Archiving and restoring a conversation in the list, with the time to undo it.

import { gettext, interpolate } from "../agents/web/i18n.js";
import { delay, toast } from "../agents/web/toasts.js";

const DOING = { archive: gettext("Archiving: %(title)s…"), restore: gettext("Restoring: %(title)s…") };

async function send(form, body, row) {
  try {
    const response = await fetch(form.getAttribute("action"), {
      method: "POST", body, keepalive: true, redirect: "error", headers: { accept: "application/json" },
    });
    if (response.ok) {
      row.remove();
      return;
    }
  } catch (error) {
    console.warn("the conversation could not be changed", error);
  }
  row.hidden = false;
  toast(gettext("The conversation was not changed. Reload the page and try again."), { isProblem: true });
}

document.addEventListener("submit", (event) => {
  const { submitter, target } = event;
  const row = target.closest(".conversation-list > li");
  if (!row || submitter?.name !== "action" || !Object.hasOwn(DOING, submitter.value)) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(target, submitter));
  const title = row.querySelector(".what").textContent;
  const next = row.nextElementSibling ?? row.previousElementSibling;
  target.closest("details").open = false;
  row.hidden = true;
  next?.querySelector("a").focus();
  delay(interpolate(DOING[submitter.value], { title }), {
    now: gettext("Close"),
    act: () => send(target, body, row),
    undone: () => {
      row.hidden = false;
      row.querySelector("a").focus();
    },
  });
});
