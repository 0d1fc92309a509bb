// One request on a page: answering it, and keeping what somebody types.

import { setText } from "./text.js";

export class Card {
  /** `on.decided(card, message)` is called when the server has taken an answer. */
  constructor(root, on) {
    this.root = root;
    this.id = root.dataset.approval;
    this.on = on;
    this.problem = root.querySelector(".approval-problem");
    this.isOver = false;
    root.addEventListener("submit", (event) => this.submit(event));
    root.addEventListener("click", ignoreSecondClick, { capture: true });
    root.addEventListener("keydown", submitOnControlEnter);
    root.addEventListener("toggle", (event) => this.toggled(event.target), { capture: true });
  }

  /** What the page has of it, for the server's list of changes. */
  get name() {
    return `${this.id}.${this.root.dataset.stamp}`;
  }

  /** Whether something typed would be lost. */
  get isDirty() {
    const fields = this.root.querySelectorAll("textarea, input:not([type=hidden]):not([type=checkbox]):not([type=radio])");
    const active = document.activeElement;
    return [...fields].some((field) => field.value !== field.defaultValue || field === active);
  }

  async submit(event) {
    const { submitter, target } = event;
    if (submitter?.name !== "decision") return;
    event.preventDefault();
    if (this.isOver || this.isBusy) return;
    const body = new FormData(target, submitter);
    this.setBusy(true);
    try {
      const answer = await post(target.action, body);
      if (answer.ok) this.on.decided(this, answer.message);
      else this.tell(answer.message);
    } finally {
      this.setBusy(false);
    }
  }

  /** Open `edit`, `reject`, … and put the cursor there; false where it is not offered. */
  open(name) {
    const panel = this.root.querySelector(`details[data-panel="${name}"]`);
    if (panel) {
      panel.open = true;
      panel.querySelector("textarea, input:not([type=hidden])").focus();
    }
    return panel !== null;
  }

  toggled(panel) {
    if (!panel.matches?.("details.panel[open]")) return;
    for (const other of this.root.querySelectorAll("details.panel[open]")) {
      if (other !== panel) other.open = false;
    }
    this.problem.hidden = true;
  }

  /** It cannot be answered any more; what was typed stays to be copied. */
  end(text) {
    this.isOver = true;
    this.root.classList.add("over");
    for (const button of this.root.querySelectorAll("button, input[type=checkbox]")) {
      button.disabled = true;
      if (button.type === "checkbox") button.checked = false;
    }
    for (const field of this.root.querySelectorAll("textarea")) field.readOnly = true;
    this.tell(text);
  }

  setBusy(isBusy) {
    this.isBusy = isBusy;
    this.root.setAttribute("aria-busy", isBusy);
    if (isBusy) this.problem.hidden = true;
  }

  tell(text) {
    setText(this.problem, text);
    this.problem.hidden = false;
  }
}

/** Post a form's fields and return `{ok, message, …}`, the server's answer. */
export async function post(url, body) {
  try {
    const response = await fetch(url, {
      method: "POST", body: new URLSearchParams(body), redirect: "error", headers: { accept: "application/json" },
    });
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    const answer = isJson ? await response.json() : { message: unexpected(response.status) };
    return { ...answer, ok: response.ok };
  } catch (error) {
    console.warn("an answer did not reach the server", error);
    return { ok: false, message: "The server was not reached, or you have been signed out. Nothing is known to be decided." };
  }
}

function unexpected(status) {
  if (status === 403) return "The page is too old to act: reload it.";
  if (status === 404) return "There is no such request, or it is not yours to see.";
  return `The server answered ${status}. Look again before you repeat this.`;
}

/** The second click of a double click may meet the next request, which has moved up. */
function ignoreSecondClick(event) {
  if (event.detail > 1 && event.target.closest("button")) {
    event.preventDefault();
    event.stopPropagation();
  }
}

function submitOnControlEnter(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !event.target.form) return;
  const button = event.target.form.querySelector("button[name=decision]");
  if (button) {
    event.preventDefault();
    event.target.form.requestSubmit(button);
  }
}
