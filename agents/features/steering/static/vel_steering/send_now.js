// A button beside the next waiting message: the work stops after its current step.

import { gettext, interpolate } from "../agents/web/i18n.js";
import { element, setText } from "../agents/web/text.js";

const page = document.getElementById("run");

page.addEventListener("message-waits", ({ detail: { id, text, isNext, line } }) => {
  if (!isNext) return;
  const label = interpolate(gettext("Send now: %(text)s"), { text });
  const title = gettext("Stop the work after its current step, and continue with this message");
  const button = element("button", { type: "button", class: "link", "aria-label": label, title }, gettext("Send now"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    const problem = await sendNow(id);
    if (problem) {
      const place = document.getElementById("composer-problem");
      setText(place, problem);
      place.hidden = false;
    } else {
      button.textContent = gettext("The work stops after its current step");
    }
    page.dispatchEvent(new CustomEvent("run-changed"));
  });
  line.querySelector("button").before(button);
});

/** Send a waiting message now. Returns the problem, or an empty text. */
async function sendNow(id) {
  const body = new FormData();
  body.set("csrfmiddlewaretoken", document.querySelector("input[name=csrfmiddlewaretoken]").value);
  try {
    const url = `${page.dataset.runsUrl}${encodeURIComponent(id)}/send-now/`;
    const response = await fetch(url, { method: "POST", body, redirect: "error", headers: { accept: "application/json" } });
    const type = response.headers.get("content-type") ?? "";
    if (type.startsWith("application/json")) return (await response.json()).message;
    return interpolate(gettext("The server returned the error %(status)s. Reload the page."), { status: response.status });
  } catch (error) {
    console.warn("the message could not be sent now", error);
    return gettext("The server cannot be reached, or you are signed out. The message still waits.");
  }
}
