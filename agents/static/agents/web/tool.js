// One tool call, folded: its name, a line of its input, and how it went.

import { appendText, element, plain, setText, visible } from "./text.js";

const BRIEF = 200;
const STATUS = {
  preparing: ["preparing", "queued"],
  called: ["called", "queued"],
  running: ["running", "running"],
  waiting: ["waiting", "waiting"],
  approved: ["approved", "queued"],
  changed: ["approved with changes", "queued"],
  rejected: ["rejected", "cancelled"],
  answered: ["answered", "completed"],
  done: ["done", "completed"],
  failed: ["failed", "failed"],
  invalid: ["not possible", "failed"],
  denied: ["denied", "failed"],
};

export class ToolCard {
  constructor(tool) {
    this.tool = visible(tool);
    this.isCalled = false;
    this.brief = element("span", { class: "brief" });
    this.status = element("span", { class: "status" });
    this.input = element("div");
    this.outputLabel = element("div", { class: "label", hidden: "" }, "Output");
    this.output = element("pre", { hidden: "", tabindex: "0" });
    this.network = element("div");
    this.root = element(
      "details",
      { class: "fold" },
      element("summary", {}, element("span", { class: "name" }, this.tool), this.brief, this.status),
      element("div", { class: "inside" }, this.input, this.outputLabel, this.output, this.network),
    );
    this.setStatus("preparing");
  }

  apply(type, data) {
    switch (type) {
      case "tool.input.delta":
        this.streamInput(data.text);
        break;
      case "tool.called":
        this.setInput(data.input);
        this.setStatus("called");
        break;
      case "tool.rejected":
        this.setInput(data.input);
        this.setOutput(data.message);
        this.setStatus("invalid");
        break;
      case "tool.started":
        this.setStatus("running");
        break;
      case "tool.progress":
        this.setOutput(data.output);
        break;
      case "tool.completed":
        this.setOutput(data.output);
        this.setStatus("done");
        break;
      case "tool.failed":
        this.setOutput(data.message);
        this.setStatus("failed");
        break;
      case "tool.denied":
        this.setOutput(data.reason);
        this.setStatus("denied");
        break;
    }
  }

  setStatus(name) {
    const [word, colour] = STATUS[name] ?? [visible(name), "cancelled"];
    this.status.textContent = word;
    this.status.dataset.status = colour;
  }

  /** JSON as it comes, in pieces. */
  streamInput(text) {
    if (!this.streamed) {
      this.streamed = element("pre");
      this.input.replaceChildren(element("div", { class: "label" }, "Input"), this.streamed);
    }
    appendText(this.streamed, text);
  }

  setInput(input) {
    this.isCalled = true;
    const fields = input !== null && typeof input === "object" && !Array.isArray(input)
      ? Object.entries(input)
      : [["input", input]];
    this.input.replaceChildren(...fields.flatMap(([name, value]) => labelled(name, plain(value))));
    const brief = fields.map(([, value]) => inShort(value));
    this.brief.textContent = visible(brief.join(" · ").slice(0, BRIEF)).replaceAll("\n", " ");
  }

  /** Where a command went, or was refused to go. */
  addConnection({ host, port, allowed, reason, sent, received, count }) {
    if (!this.network.hasChildNodes()) this.network.append(element("div", { class: "label" }, "Network"));
    const where = host ? `${host}:${port}` : "a request";
    const times = count > 1 ? `${count} times, ` : "";
    const how = allowed ? `${times}${sent} bytes sent, ${received} received` : `${times}refused: ${reason}`;
    this.network.append(element("div", { class: allowed ? "event" : "event bad" }, visible(`${where}: ${how}`)));
  }

  setOutput(output) {
    this.outputLabel.hidden = this.output.hidden = false;
    setText(this.output, plain(output));
  }
}

/** A value in a few words: of a plan only how far it is. */
function inShort(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.length > 0 && value.every((item) => item?.content && item?.status)) {
    const done = value.filter((item) => item.status === "completed").length;
    return `${done} of ${value.length} done`;
  }
  return JSON.stringify(value);
}

/** A name above a block of text. */
export function labelled(name, text) {
  const block = element("pre", { tabindex: "0" });
  setText(block, text);
  return [element("div", { class: "label" }, visible(name)), block];
}
