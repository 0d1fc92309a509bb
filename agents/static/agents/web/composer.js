// The form for a message: sends it with its files, and keeps both if the server refuses them.

import { Attachments } from "./attachments.js";
import { FileNames } from "./file_names.js";
import { gettext, interpolate, ngettext } from "./i18n.js";
import { element, setText, visible } from "./text.js";
import { statusWord } from "./tree.js";

const form = document.getElementById("composer");
const page = document.getElementById("run"); // not on the home page

if (form) {
  const field = form.elements.message;
  const problem = document.getElementById("composer-problem");
  const attachments = new Attachments(form);
  let isBusy = false;

  if (form.dataset.namesUrl) {
    new FileNames(field, form.dataset.namesUrl);
    document.getElementById("mention-help").hidden = false;
  }

  const tell = (text) => {
    setText(problem, text);
    problem.hidden = !text;
  };

  const setBusy = (busy) => {
    isBusy = busy;
    form.setAttribute("aria-busy", busy);
    form.querySelector("button.primary").disabled = busy;
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isBusy) return;
    tell("");
    setBusy(true);
    const answer = await send(form.action, new FormData(form));
    setBusy(false);
    if (answer.files) attachments.tell(answer.files);
    if (!answer.ok) {
      const { refused } = attachments;
      const files = interpolate(ngettext(
        "A file was not accepted: see below.", "%(count)s files were not accepted: see below.", refused,
      ), { count: refused });
      tell(refused ? files : answer.message);
      return;
    }
    if (!answer.is_queued) {
      location.assign(answer.url);
      return;
    }
    // The next message is another one.
    form.elements.key.value = newKey();
    field.value = "";
    attachments.clear();
    page.dispatchEvent(new CustomEvent("run-changed"));
    field.focus();
  });
}

const stop = document.getElementById("stop");
stop?.addEventListener("click", async (event) => {
  // Without a reload, so that a message that is being written stays.
  event.preventDefault();
  stop.disabled = true;
  const answer = await send(stop.form.action, new FormData(stop.form));
  stop.disabled = false;
  if (answer.ok) {
    page.dispatchEvent(new CustomEvent("run-changed"));
    return;
  }
  tellProblem(answer.message);
});

/** Post a form. Returns the answer of the server, or a message. The same key starts only one run. */
async function send(url, body) {
  try {
    const response = await fetch(url, { method: "POST", body, redirect: "error", headers: { accept: "application/json" } });
    const type = response.headers.get("content-type") ?? "";
    if (type.startsWith("application/json")) return { ...await response.json(), ok: response.ok };
    const text = type.startsWith("text/plain") ? await response.text() : UNEXPECTED[response.status];
    const { status } = response;
    return { ok: false, message: text ?? interpolate(gettext("The server returned the error %(status)s. Send the message again."), { status }) };
  } catch (error) {
    console.warn("the message did not reach the server", error);
    return { ok: false, message: gettext("The server cannot be reached, or you are signed out. Your message is still here: send it again.") };
  }
}

const UNEXPECTED = {
  403: gettext("This page has expired. Copy your message, reload the page and send it again."),
  404: gettext("This run no longer exists, or you no longer have permission to see it."),
};

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Later messages of the conversation: those that wait, and the one that the agent works on.

const WAITS = new Set(["pending"]);
const ENDED = new Set(["completed", "failed", "cancelled"]);

page?.addEventListener("run-summary", ({ detail: { thread } }) => {
  const list = document.getElementById("queued");
  const at = thread.findIndex(({ id }) => id === page.dataset.run);
  const later = at < 0 ? [] : thread.slice(at + 1).filter(({ status }) => !ENDED.has(status));
  if (list.contains(document.activeElement) && later.length === list.children.length) return;
  const next = later.find(({ status }) => WAITS.has(status));
  list.replaceChildren(...later.map((each) => line(each, each === next)));
  list.hidden = later.length === 0;
});

/** Return the line of a later message. `isNext`: it is the first one that waits. */
function line({ id, status, text }, isNext) {
  const what = element("span", { class: "what" }, text);
  if (!WAITS.has(status)) {
    const link = element("a", { href: `${page.dataset.runsUrl}${encodeURIComponent(id)}/` }, gettext("Show the work"));
    return element("li", {}, element("span", { class: "status", "data-status": status }, statusWord(status)), what, link);
  }
  const remove = element("button", { type: "button", class: "link", "aria-label": interpolate(gettext("Remove the message %(text)s"), { text }) }, gettext("Remove"));
  remove.addEventListener("click", async () => {
    remove.disabled = true;
    const body = new FormData();
    body.set("csrfmiddlewaretoken", document.querySelector("input[name=csrfmiddlewaretoken]").value);
    await send(`${page.dataset.runsUrl}${encodeURIComponent(id)}/cancel/`, body);
    page.dispatchEvent(new CustomEvent("run-changed"));
  });
  const found = element("li", {}, element("span", { class: "status", "data-status": "pending" }, gettext("next")), what, remove);
  page.dispatchEvent(new CustomEvent("message-waits", { detail: { id, text, isNext, line: found } }));
  return found;
}

function tellProblem(text) {
  const problem = document.getElementById("composer-problem");
  setText(problem, text);
  problem.hidden = !text;
}
