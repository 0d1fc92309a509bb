// A button beside the next waiting message: the agent reads it after its current step.

import { gettext, interpolate } from "../agents/web/i18n.js";
import { element, setText } from "../agents/web/text.js";

const page = document.getElementById("run");

// What happens to each message that was sent now, by its id.
const sent = new Map();
// The id of the message in the line before, if the next message can follow it immediately.
let before = "";

page.addEventListener("message-waits", ({ detail: { id, text, isNext, line } }) => {
  const mayFollow = isNext || sent.get(before)?.joins;
  before = id;
  const remove = line.querySelector("button");
  if (sent.has(id)) {
    remove.before(element("span", {}, sent.get(id).told));
    return;
  }
  if (!mayFollow) return;
  const label = interpolate(gettext("Send now: %(text)s"), { text });
  const title = gettext("The agent reads the message after its current step, and continues");
  const button = element("button", { type: "button", class: "link", "aria-label": label, title }, gettext("Send now"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    const answer = await sendNow(id);
    if (answer.message) {
      const place = document.getElementById("composer-problem");
      setText(place, answer.message);
      place.hidden = false;
      button.disabled = false;
    } else {
      sent.set(id, answer);
      button.replaceWith(element("span", {}, answer.told));
    }
    page.dispatchEvent(new CustomEvent("run-changed"));
  });
  remove.before(button);
});

/** Send a waiting message now. Returns the answer of the server; its `message` is the problem. */
async function sendNow(id) {
  const body = new FormData();
  body.set("csrfmiddlewaretoken", document.querySelector("input[name=csrfmiddlewaretoken]").value);
  try {
    const url = `${page.dataset.runsUrl}${encodeURIComponent(id)}/send-now/`;
    const response = await fetch(url, { method: "POST", body, redirect: "error", headers: { accept: "application/json" } });
    const type = response.headers.get("content-type") ?? "";
    if (type.startsWith("application/json")) return await response.json();
    return { message: interpolate(gettext("The server returned the error %(status)s. Reload the page."), { status: response.status }) };
  } catch (error) {
    console.warn("the message could not be sent now", error);
    return { message: gettext("The server cannot be reached, or you are signed out. The message still waits.") };
  }
}
