// One request on a page: sends the decision after the time to undo it, and keeps text that the user is typing.

import { gettext, interpolate } from "./i18n.js";
import { setText } from "./text.js";
import { delay, toast } from "./toasts.js";

/** A browser sends at most 64 KiB for a page that the user leaves. */
const LEAVING_BYTES = 60_000;
const DOING = {
  approve: gettext("Approving: %(tool)s…"),
  edit: gettext("Approving with changes: %(tool)s…"),
  always: gettext("Approving and always allowing: %(tool)s…"),
  reject: gettext("Rejecting: %(tool)s…"),
  respond: gettext("Answering: %(tool)s…"),
};

/** The bytes of all decisions of the page that are not sent yet. */
let heldBytes = 0;

export class Card {
  /**
   * Calls `on.decided(card, message)` when the server has accepted a decision. Before that, calls `on.held(card)` when
   * the decision waits for its time to undo, and `on.returned(card)` if the user undoes it or the server refuses it.
   */
  constructor(root, on) {
    this.root = root;
    this.id = root.dataset.approval;
    this.on = on;
    this.problem = root.querySelector(".approval-problem");
    this.isOver = false;
    this.isHeld = false;
    root.addEventListener("submit", (event) => this.submit(event));
    root.addEventListener("click", ignoreSecondClick, { capture: true });
    root.addEventListener("keydown", submitOnControlEnter);
    root.addEventListener("toggle", (event) => this.toggled(event.target), { capture: true });
  }

  /** The request and its state on this page. The server compares it to find changes. */
  get name() {
    return `${this.id}.${this.root.dataset.stamp}`;
  }

  /** Whether removing the card would lose typed text. */
  get isDirty() {
    const fields = this.root.querySelectorAll("textarea, input:not([type=hidden]):not([type=checkbox]):not([type=radio])");
    const active = document.activeElement;
    return [...fields].some((field) => field.value !== field.defaultValue || field === active);
  }

  async submit(event) {
    const { submitter, target } = event;
    if (submitter?.name !== "decision") return;
    event.preventDefault();
    if (this.isOver || this.isBusy || this.isHeld) return;
    const body = new URLSearchParams(new FormData(target, submitter));
    const bytes = body.toString().length;
    if (isRefused(body) || heldBytes + bytes > LEAVING_BYTES) {
      await this.send(target.action, body);
      return;
    }
    this.hold();
    heldBytes += bytes;
    delay(interpolate(DOING[submitter.value] ?? gettext("Deciding: %(tool)s…"), { tool: this.tool }), {
      act: () => {
        heldBytes -= bytes;
        this.send(target.action, body);
      },
      undone: () => {
        heldBytes -= bytes;
        this.giveBack();
        this.root.focus();
      },
    });
  }

  get tool() {
    return this.root.querySelector("h2 code").textContent;
  }

  /** Hide the card while its decision can be undone. */
  hold() {
    this.isHeld = true;
    this.on.held(this);
    this.root.hidden = true;
    this.problem.hidden = true;
    const box = this.root.querySelector("input[name=selected]");
    if (box) Object.assign(box, { checked: false, disabled: true });
  }

  giveBack() {
    if (!this.isHeld) return;
    this.isHeld = false;
    this.root.hidden = false;
    const box = this.root.querySelector("input[name=selected]");
    if (box) box.disabled = false;
    this.on.returned(this);
  }

  async send(url, body) {
    this.setBusy(true);
    const answer = await post(url, body);
    this.setBusy(false);
    if (answer.ok) {
      this.on.decided(this, answer.message);
      return;
    }
    // The card may be far away from the place where the user reads now.
    if (this.isHeld) {
      const values = { tool: this.tool, message: answer.message };
      toast(interpolate(gettext("Not decided: %(tool)s. %(message)s"), values), { isProblem: true });
    }
    this.giveBack();
    this.tell(answer.message);
  }

  /** Open the panel `edit`, `reject`, … and focus its field. Returns false if it is not offered. */
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

  /** Disable the card. Typed text stays, so that the user can copy it. */
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

/** Whether the server is sure to refuse these fields. Then its reason is shown at once. */
function isRefused(body) {
  if (body.get("decision") === "respond") return body.get("reason").trim() === "";
  if (!body.has("input")) return false;
  try {
    JSON.parse(body.get("input"));
    return false;
  } catch {
    return true;
  }
}

/** Post the fields of a form, as URLSearchParams. Returns the server's answer: `{ok, message, …}`. */
export async function post(url, body) {
  try {
    const response = await fetch(url, {
      method: "POST", body, redirect: "error", keepalive: body.toString().length <= LEAVING_BYTES,
      headers: { accept: "application/json" },
    });
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    const answer = isJson ? await response.json() : { message: unexpected(response.status) };
    return { ...answer, ok: response.ok };
  } catch (error) {
    console.warn("a decision did not reach the server", error);
    return {
      ok: false,
      message: gettext("The server cannot be reached, or you are signed out. Your decision may not have been stored. Reload the page to check."),
    };
  }
}

function unexpected(status) {
  if (status === 403) return gettext("This page has expired. Reload it and try again.");
  if (status === 404) return gettext("This request does not exist, or you do not have permission to see it.");
  return interpolate(
    gettext("The server returned the error %(status)s. Reload the page to see whether your decision was stored."), { status },
  );
}

/** Ignore the second click of a double click: it can hit the next request, which has moved up. */
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
