// One tool call, folded: its name, one line of its input, and its status.

import { highlightIn } from "./code.js";
import * as types from "./event_types.js";
import { gettext, interpolate } from "./i18n.js";
import { LongText } from "./long_text.js";
import { reviewElement } from "./review.js";
import { element, plain, visible } from "./text.js";
import { codeOf, formOf, treeOf } from "./tool_forms.js";
import { jsonTree } from "./tool_forms/json.js";

const BRIEF = 200;
// Tools whose calls are shown as a diff or a formatted statement instead of their inputs.
const READ = new Set(document.getElementById("run")?.dataset.readable.split(" "));
// The marker that agents/events/preview.py writes where it cuts a text.
const CUT = /\n\[… [\d,]+ bytes cut …\]\n/;
const STATUS = {
  preparing: [gettext("preparing"), "queued"],
  called: [gettext("called"), "queued"],
  running: [gettext("running"), "running"],
  waiting: [gettext("waiting"), "waiting"],
  approved: [gettext("approved"), "queued"],
  changed: [gettext("approved with changes"), "queued"],
  rejected: [gettext("rejected"), "cancelled"],
  answered: [gettext("answered"), "completed"],
  done: [gettext("done"), "completed"],
  failed: [gettext("failed"), "failed"],
  invalid: [gettext("invalid input"), "failed"],
  denied: [gettext("denied"), "failed"],
};

/** A connection, and several of the same kind. */
const CONNECTION = [
  {
    allowed: gettext("%(where)s: %(sent)s bytes sent, %(received)s received"),
    refused: gettext("%(where)s: refused: %(reason)s"),
  },
  {
    allowed: gettext("%(where)s: %(count)s times, %(sent)s bytes sent, %(received)s received"),
    refused: gettext("%(where)s: %(count)s times, refused: %(reason)s"),
  },
];

export class ToolCard {
  /** `runUrl` is the page of the run that makes the call. */
  constructor(tool, callId, runUrl) {
    this.callId = callId;
    this.runUrl = runUrl;
    this.isReadable = READ.has(tool);
    this.form = formOf(tool);
    this.context = {
      tool, runUrl, code: codeOf(tool), input: null,
      /** The nodes of further fields of an input or an output. */
      others: (fields) => Object.entries(fields).flatMap(([name, value]) => fieldOf(name, value)),
    };
    this.isCut = false;
    this.tool = visible(tool);
    this.isCalled = false;
    // Called after the status has changed.
    this.changed = () => {};
    this.hasResult = false;
    this.brief = element("span", { class: "brief" });
    this.status = element("span", { class: "status" });
    this.input = element("div");
    this.outputLabel = element("div", { class: "label", hidden: "" }, gettext("Output"));
    this.output = element("pre", { hidden: "", tabindex: "0" });
    this.outputText = new LongText(this.output);
    // The output in the form of its tool, and a button that shows it as text.
    this.shaped = element("div", { class: "shaped", hidden: "" });
    this.asText = element("button", { type: "button", class: "link as-text", hidden: "" }, gettext("Show as text"));
    this.asText.addEventListener("click", () => this.showShaped(this.shaped.hidden));
    this.whole = element("button", { type: "button", class: "more", hidden: "" }, gettext("Show full input and output"));
    this.whole.addEventListener("click", () => this.loadWhole(true));
    this.network = element("div");
    this.root = element(
      "details",
      { class: "fold" },
      element("summary", {}, element("span", { class: "name" }, this.tool), this.brief, this.status),
      element("div", { class: "inside" }, this.input, this.outputLabel, this.shaped, element("div", {}, this.output), this.asText, this.whole, this.network),
    );
    this.root.addEventListener("toggle", () => {
      this.loadIfOpen();
    });
    this.setStatus("preparing");
  }

  apply(type, data) {
    switch (type) {
      case types.TOOL_INPUT_DELTA:
        this.streamInput(data.text);
        break;
      case types.TOOL_CALLED:
        this.setInput(data.input);
        this.setStatus("called");
        break;
      case types.TOOL_REJECTED:
        this.setInput(data.input);
        this.setOutput(data.message);
        this.setStatus("invalid");
        break;
      case types.TOOL_STARTED:
        this.outputText.set("");
        this.setStatus("running");
        break;
      case types.TOOL_PROGRESS:
        // The last parts can arrive after the result, which contains them already.
        if (!this.hasResult) this.streamOutput(plain(data.text));
        break;
      case types.TOOL_COMPLETED:
        this.setOutput(data.output);
        this.setStatus("done");
        break;
      case types.TOOL_FAILED:
        this.setOutput(data.message);
        this.setStatus("failed");
        break;
      case types.TOOL_DENIED:
        this.setOutput(data.reason);
        this.setStatus("denied");
        break;
    }
  }

  /** Load what the form of the tool needs, when a reader has opened the call. */
  loadIfOpen() {
    if (!this.root.open || !this.isCalled || this.isRefused) return;
    if (this.isCut && this.hasResult && this.form.isWhole) this.loadWhole(true);
    else if (this.isReadable) this.loadWhole(false);
  }

  setStatus(name) {
    const [word, colour] = STATUS[name] ?? [visible(name), "cancelled"];
    this.status.textContent = word;
    this.status.dataset.status = colour;
    this.changed();
  }

  /** Append a part of the input's JSON. */
  streamInput(text) {
    if (!this.streamed) {
      const shown = element("pre", { tabindex: "0" });
      this.streamed = new LongText(shown);
      this.input.replaceChildren(element("div", { class: "label" }, gettext("Input")), element("div", {}, shown));
    }
    this.streamed.append(text);
  }

  setInput(input) {
    this.isCalled = true;
    const fields = input !== null && typeof input === "object" && !Array.isArray(input)
      ? Object.entries(input)
      : [[gettext("input"), input]];
    this.context.input = input;
    const [codeField, language] = this.context.code;
    this.input.replaceChildren(...(this.form.input?.(input, this.context) ?? fields.flatMap(
      ([name, value]) => fieldOf(name, value, name === codeField ? language : ""),
    )));
    const brief = fields.map(([, value]) => inShort(value));
    if (fields.some(([, value]) => CUT.test(plain(value)))) this.cut();
    this.brief.textContent = visible(brief.join(" · ").slice(0, BRIEF)).replaceAll("\n", " ");
  }

  /** Show a connection of a command, allowed or refused. */
  addConnection({ host, port, allowed, reason, sent, received, count }) {
    if (!this.network.hasChildNodes()) this.network.append(element("div", { class: "label" }, gettext("Network")));
    const where = host ? `${host}:${port}` : gettext("a request");
    const text = CONNECTION[Number(count > 1)][allowed ? "allowed" : "refused"];
    const shown = interpolate(text, { where, count, sent, received, reason });
    this.network.append(element("div", { class: allowed ? "event" : "event bad" }, visible(shown)));
  }

  /** Append a part of the output. */
  streamOutput(text) {
    this.showShaped(false);
    this.outputLabel.hidden = this.output.hidden = false;
    this.outputText.append(text);
  }

  setOutput(output) {
    this.hasResult = true;
    this.outputLabel.hidden = this.output.hidden = false;
    const text = plain(output);
    this.outputText.set(text);
    this.isCut = false;
    if (CUT.test(text)) this.cut();
    const nodes = this.form.output?.(text, this.context) ?? treeOf(text);
    this.shaped.replaceChildren(...(nodes ?? []));
    this.asText.hidden = nodes === null;
    this.showShaped(nodes !== null);
    this.loadIfOpen();
  }

  /** Show the output in the form of its tool, or as text. */
  showShaped(isShaped) {
    this.shaped.hidden = !isShaped;
    this.output.parentElement.hidden = isShaped;
    this.asText.textContent = isShaped ? gettext("Show as text") : gettext("Show formatted");
  }

  cut() {
    this.isCut = true;
    this.whole.hidden = false;
  }

  /** Load the call from the journal: its diff or statement, and with `all` its full texts. */
  async loadWhole(all) {
    this.isReadable = false;
    this.whole.disabled = true;
    let call;
    try {
      const url = `${this.runUrl}call/?call=${encodeURIComponent(this.callId)}`;
      const response = await fetch(url, { headers: { accept: "application/json" } });
      if (!response.ok || response.redirected) throw new Error(`status ${response.status}`);
      call = await response.json();
    } catch (error) {
      console.warn("the call could not be loaded", error);
      this.isRefused = true;
      this.whole.textContent = gettext("The call could not be loaded. You may not have permission to see it.");
      return;
    }
    if (call.review) this.input.replaceChildren(reviewElement(call.review));
    else if (all && call.input) this.setInput(call.input);
    if (!all && this.isCut) {
      this.whole.disabled = false;
      return;
    }
    // Once: a whole text can contain the marker of a cut itself.
    this.isRefused = all;
    if (all && call.output) this.setOutput(call.output);
    this.whole.hidden = !call.is_cut;
    this.whole.textContent = gettext("The rest is too long to show here.");
  }
}

/** Return a short text for a value. For a plan: how many items are done. */
function inShort(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.length > 0 && value.every((item) => item?.content && item?.status)) {
    const done = value.filter((item) => item.status === "completed").length;
    return interpolate(gettext("%(done)s of %(count)s done"), { done, count: value.length });
  }
  return JSON.stringify(value);
}

/** Return a label and the value of a field: a text, or a tree that folds. */
function fieldOf(name, value, language = "") {
  const isTree = value !== null && typeof value === "object" && Object.keys(value).length > 0;
  return isTree
    ? [element("div", { class: "label" }, visible(name)), jsonTree(value)]
    : labelled(name, plain(value), language);
}

/** Return a label and a block of text, with colours if it is code in a known language. */
export function labelled(name, text, language = "") {
  const block = element("pre", { tabindex: "0" });
  const holder = element("div", {}, block);
  new LongText(block).set(text);
  highlightIn(block, language);
  return [element("div", { class: "label" }, visible(name)), holder];
}
