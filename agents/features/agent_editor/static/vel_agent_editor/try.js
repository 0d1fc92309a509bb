// A test run beside the form: its status and its answer, without leaving the form.

import { gettext } from "../agents/web/i18n.js";
import { appendText, element, visible } from "../agents/web/text.js";
import { statusWord } from "../agents/web/tree.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15000;
const ENDED = ["completed", "failed", "cancelled"];

async function follow(row, status, url) {
  for (let wait = FIRST_WAIT; ; wait = Math.min(wait * 1.2, LONGEST_WAIT)) {
    await new Promise((done) => { setTimeout(done, wait); });
    let found;
    try {
      const response = await fetch(`/api/v1${url.replace(/\/$/, "")}`, { headers: { accept: "application/json" } });
      if (!response.ok) return;
      found = await response.json();
    } catch (error) {
      console.warn("the run could not be read", error);
      return;
    }
    status.dataset.status = found.status;
    status.textContent = statusWord(found.status);
    if (ENDED.includes(found.status)) {
      showAnswer(row, found);
      return;
    }
  }
}

function showAnswer(row, found) {
  const text = found.error?.message || found.output || "";
  if (!text) return;
  const place = element("div", { class: "answer", tabindex: "0" });
  appendText(place, text);
  row.append(place);
}

/** Start test runs with the unsaved changes and without a reload, and show their answers. */
export function tryBeside() {
  const place = document.getElementById("try-form");
  const list = document.getElementById("try-runs");
  if (!place || !list) return;
  const button = place.querySelector("button");
  const note = document.getElementById("try-note");
  const field = place.querySelector("textarea");
  const { form } = button; // the form of the definition
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    const message = field.value;
    const data = new FormData(form);
    data.set("action", "try");
    button.disabled = true;
    try {
      const response = await fetch(form.getAttribute("action"), { method: "POST", body: data, headers: { accept: "application/json" } });
      const found = await response.json();
      if (!response.ok) {
        note.textContent = found.problem;
        return;
      }
      place.querySelector("input[name=key]").value = `${Date.now().toString(36)}${Math.random().toString(36).slice(2)}`.padEnd(26, "0").slice(0, 26);
      field.value = "";
      note.textContent = gettext("The run has started.");
      const status = element("span", { class: "status", "data-status": "queued" }, statusWord("queued"));
      const row = element("li", {}, element("a", { href: found.url }, visible(message).slice(0, 60)), " ", status);
      list.prepend(row);
      follow(row, status, found.url);
    } catch (error) {
      console.warn("the run could not be started", error);
      note.textContent = gettext("The server did not answer. Reload the page.");
    } finally {
      button.disabled = false;
    }
  });
}
