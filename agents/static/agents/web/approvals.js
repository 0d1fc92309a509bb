// What waits for a person. Requests come from the server as text, with the digest of what they show.

import { element, setText, visible } from "./text.js";
import { labelled } from "./tool.js";

export class Approvals {
  /** `send(text)` says whether the frame went out; `csrf` is the page's token. */
  constructor(root, send, csrf) {
    this.root = root;
    this.send = send;
    this.csrf = csrf;
    this.cards = new Map();
  }

  /** Show exactly these requests. Cards that are there stay as they are: somebody may be typing. */
  show(requests) {
    const pending = new Set(requests.map((request) => request.id));
    for (const [id, card] of this.cards) {
      if (!pending.has(id)) {
        card.root.remove();
        this.cards.delete(id);
      }
    }
    for (const request of requests) {
      if (!this.cards.has(request.id)) {
        const card = new ApprovalCard(request, (decision) => this.decide(request, decision));
        this.cards.set(request.id, card);
        this.root.append(card.root);
      }
    }
  }

  decide(request, { decision, reason = "", input = null }) {
    const card = this.cards.get(request.id);
    const frame = JSON.stringify({
      type: "decide",
      ref: request.id,
      csrf: this.csrf,
      approval_id: request.id,
      digest: request.digest,
      decision,
      reason,
    });
    // The input goes as it was typed: a browser would round large numbers.
    const text = input === null ? frame : `${frame.slice(0, -1)},"input":${input}}`;
    if (this.send(text)) card.setBusy(true);
    else card.tell("There is no connection just now. Try again when it is back.");
  }

  /** The server's answer to a decision. */
  answer(frame) {
    const card = this.cards.get(frame.ref);
    if (card && frame.type === "error") {
      card.setBusy(false);
      card.tell(frame.message);
    }
  }

  /** Answers that have not come will not come. */
  connectionLost() {
    for (const card of this.cards.values()) card.setBusy(false);
  }
}

class ApprovalCard {
  constructor(request, decide) {
    this.decide = decide;
    this.form = element("div", { class: "answer" });
    this.message = element("p", { class: "note problem", role: "alert", hidden: "" });
    const title = element("h2", {}, "Allow ", element("code", {}, visible(request.tool)), "?");
    this.root = element("article", { class: "approval", "data-approval": request.id }, title);
    if (request.prompt) this.root.append(element("p", {}, visible(request.prompt)));
    for (const field of request.fields) this.root.append(...labelled(field.name, field.text));
    this.root.append(this.buttons(request), this.form, this.message);
  }

  buttons(request) {
    const offers = {
      approve: () => button("Approve", "primary", () => this.decide({ decision: "approve" })),
      edit: () => button("Edit…", "", () => this.openEdit(request)),
      reject: () => button("Reject…", "", () => this.openReject()),
      respond: () => button("Answer instead…", "", () => this.openRespond()),
    };
    const allowed = Object.keys(offers).filter((name) => request.allowed_decisions.includes(name));
    return element("div", { class: "buttons" }, ...allowed.map((name) => offers[name]()));
  }

  openEdit(request) {
    const area = element("textarea", { class: "code", rows: "10", spellcheck: "false" });
    area.value = request.input_json;
    this.open("What should run instead, as JSON", area, "Run with these changes", "primary", () => {
      const problem = problemOfInput(area.value);
      if (problem) this.tell(problem);
      else this.decide({ decision: "edit", input: area.value });
    });
  }

  openReject() {
    const area = element("textarea", { rows: "2", maxlength: "10000" });
    this.open("Why not? The agent is told.", area, "Reject", "danger", () =>
      this.decide({ decision: "reject", reason: area.value }));
  }

  openRespond() {
    const area = element("textarea", { rows: "4" });
    this.open("The call is not made; the agent gets this as its result.", area, "Answer", "primary", () => {
      if (area.value.trim()) this.decide({ decision: "respond", reason: area.value });
      else this.tell("Write what the result should be.");
    });
  }

  open(label, area, action, kind, act) {
    this.message.hidden = true;
    this.form.replaceChildren(
      element("label", {}, label, area),
      element("div", { class: "buttons" }, button(action, kind, act),
        button("Back", "", () => this.form.replaceChildren())),
    );
    area.focus();
  }

  setBusy(isBusy) {
    for (const control of this.root.querySelectorAll("button, textarea")) control.disabled = isBusy;
    if (isBusy) this.message.hidden = true;
  }

  tell(text) {
    setText(this.message, text);
    this.message.hidden = false;
  }
}

function button(text, kind, act) {
  const made = element("button", { type: "button", class: kind }, text);
  made.addEventListener("click", act);
  return made;
}

function problemOfInput(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `This is not JSON: ${error.message}`;
  }
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  return isObject ? "" : "Write an object: { … }";
}
