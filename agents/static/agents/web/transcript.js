// What the agent says and does, in order: a pure function of the events, applied one by one.

import { LongText } from "./long_text.js";
import { RenderedTexts } from "./said.js";
import { ToolCard } from "./tool.js";
import { element, plain, setText, visible } from "./text.js";

const DECISIONS = { approve: "approved", edit: "changed", reject: "rejected", respond: "answered" };
const TRUST = { imported: "imported, reviewed by nobody", local: "from a directory of the host" };
const GUARDED = {
  input: "the message", output: "a reply", thinking: "what the model thought", tool_call: "a call", tool_result: "a result",
};
const COMPACTED = {
  model: "Earlier turns were summarised by the model",
  journal: "Earlier turns were summarised from the journal, without the model",
  clipping: "Long texts of earlier turns were cut",
};
const QUIET_ENDS = new Set(["end_turn", "stop_sequence", undefined, null, ""]);

export class Transcript {
  /**
   * `subagent(data)` makes the element for an event `subagent.started`; `runUrl` is the run's page;
   * `changed()` is called when something that stood there already has changed its size.
   */
  constructor(root, subagent, runUrl, changed) {
    this.root = root;
    this.subagent = subagent;
    this.runUrl = runUrl;
    this.rendered = new RenderedTexts(runUrl, changed);
    this.parts = new Map();
    this.tools = new Map();
    // What the model call under way has begun: it goes when the call is made again.
    this.unfinished = new Map();
  }

  apply({ type, data, seq }) {
    const [subject, what] = type.split(".");
    if (subject === "text" || subject === "reasoning") this.applyPart(subject, what, data, seq);
    else if (subject === "tool") this.applyTool(type, data);
    else this.applyOther(type, data);
  }

  applyPart(kind, what, { part_id: id, text = "" }, seq) {
    const key = `${kind} ${id}`;
    if (!this.unfinished.has(key)) this.parts.set(key, this.addPart(kind, key));
    const part = this.parts.get(key);
    if (what === "delta") part.append(text);
    if (what === "completed") {
      part.set(text);
      if (kind === "text") this.rendered.want(seq, text, part.node);
      this.unfinished.delete(key);
    }
  }

  addPart(kind, key) {
    const said = element("div", { class: "said" });
    const shown = kind === "text" ? element("div", {}, said) : element(
      "details", { class: "fold thinking" }, element("summary", {}, "Thinking"), said,
    );
    this.root.append(shown);
    this.unfinished.set(key, shown);
    return new LongText(said);
  }

  applyTool(type, data) {
    const id = data.call_id;
    const begins = type === "tool.input.started" || type === "tool.called" || type === "tool.rejected";
    let card = this.tools.get(id);
    if (!card || (begins && card.isCalled)) {
      card = new ToolCard(data.tool ?? "tool", id, this.runUrl);
      this.tools.set(id, card);
      this.root.append(card.root);
      this.unfinished.set(id, card.root);
    }
    card.apply(type, data);
    if (card.isCalled) this.unfinished.delete(id);
  }

  applyOther(type, data) {
    switch (type) {
      case "step.started":
        this.unfinished.clear();
        break;
      case "step.reset":
        for (const node of this.unfinished.values()) node.remove();
        this.unfinished.clear();
        this.note(`The model is asked again: ${data.reason}`);
        break;
      case "model.fallback":
        this.note(`${data.from_provider} ${data.from_model} is down: ${data.provider} ${data.model} goes on.`);
        break;
      case "sandbox.connection":
        this.tools.get(data.call_id)?.addConnection(data);
        break;
      case "approval.requested":
        this.tools.get(data.call_id)?.setStatus("waiting");
        break;
      case "approval.decided":
        this.decided(data);
        break;
      case "run.resumed":
        if (data.reason !== "approvals decided") this.note(`The run goes on: ${data.reason}`);
        break;
      case "run.suspended":
        if (data.reason !== "approval") this.note(waitsFor(data));
        break;
      case "subagent.started":
        this.root.append(this.subagent(data));
        break;
      case "skill.loaded":
        this.note(`Skill loaded: ${data.name}${data.version ? ` ${data.version}` : ""} (${TRUST[data.trust] ?? data.trust})`);
        break;
      case "skill.deactivated":
        this.note(`Skill put away: ${data.name}`);
        break;
      case "skills.skipped":
        this.skipped(data);
        break;
      case "uploads.ready":
        for (const { path, note } of data.files) if (note) this.note(`${path}: ${note}`);
        break;
      case "workspace.runs_outside":
        this.note(runsOutside(data), true);
        break;
      case "workspace.moved":
        this.note(data.lost_host
          ? `The host ${data.lost_host} failed. The files are as they were when they were last stored; what was written later is lost.`
          : `The files have moved to the host ${data.host}.`, Boolean(data.lost_host));
        if (data.mcp_state === "lost") this.note("What MCP programs had kept is lost: they begin anew.", true);
        break;
      case "budget.warning":
        this.note(`Nearly used up: ${amount(data, data.used)} of ${amount(data, data.limit)} (limit of the ${data.scope}).`);
        break;
      case "context.compacted":
        this.note(`${COMPACTED[data.by] ?? COMPACTED.model}: ${data.before} tokens became ${data.after}.`);
        break;
      case "output.invalid":
        this.note(`The answer did not fit its form: ${data.problems.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join("; ")}`, true);
        break;
      case "guard.stuck":
        this.note(`The agent repeats itself (${data.kind}, ${data.count} times); ${data.action === "end" ? "the run ends" : "it was told so"}.`, true);
        break;
      case "guard.blocked":
        this.note(`The guardrail ${data.guardrail} blocked ${GUARDED[data.stage] ?? data.stage}: ${data.reason}`, true);
        break;
      case "guard.replaced":
        this.note(`The guardrail ${data.guardrail} changed ${GUARDED[data.stage] ?? data.stage}.`);
        break;
      case "hook.failed":
        this.note(`The hook ${data.hook} ${data.message} (${data.point}).`, true);
        break;
      case "tool.retried":
        this.note(`Tried again in ${data.retry_in} s: ${data.message}`);
        break;
      case "run.completed":
        if ("structured_output" in data) this.value(data.structured_output);
        if (!QUIET_ENDS.has(data.finish_reason)) this.note(`Ended: ${data.finish_reason}`, true);
        break;
      case "run.failed":
        this.note(`Failed: ${data.message ?? data.code}`, true);
        break;
      case "run.cancelled":
        this.note(`Cancelled${data.by ? ` by ${data.by}` : ""}${data.reason ? `: ${data.reason}` : ""}`, true);
        break;
    }
  }

  decided({ call_id: id, decision, by, reason }) {
    const word = DECISIONS[decision] ?? decision;
    const card = this.tools.get(id);
    card?.setStatus(word);
    const what = card ? ` ${card.tool}` : "";
    this.note(`${by ?? "Somebody"} ${word}${what}${reason ? `: ${reason}` : ""}`);
  }

  skipped({ problems = [], count = problems.length }) {
    const list = element("ul");
    for (const { skill, message } of problems) {
      const line = element("li");
      setText(line, `${skill}: ${message}`);
      list.append(line);
    }
    const title = element("summary");
    setText(title, count === 1 ? "A skill was left out" : `${count} skills were left out`);
    this.root.append(element("details", { class: "fold" }, title, element("div", { class: "inside" }, list)));
  }

  value(answer) {
    const text = element("pre");
    setText(text, plain(answer));
    this.root.append(element(
      "details", { class: "fold value", open: true }, element("summary", {}, "Answer as data"), element("div", { class: "inside" }, text),
    ));
  }

  note(text, isBad = false) {
    const line = element("div", { class: isBad ? "event bad" : "event" });
    setText(line, text);
    this.root.append(line);
  }
}

function runsOutside({ changes, count, incomplete }) {
  const files = changes.map(({ path, what, why }) => `${what} ${path} (${why})`);
  if (count > changes.length) files.push(`${count - changes.length} more files`);
  const unseen = incomplete.map((place) => `not looked at: ${place}`);
  return `Runs outside the sandbox later, so look at it first: ${[...files, ...unseen].join("; ")}`;
}

function amount({ kind }, value) {
  return kind === "cost" ? `$${value}` : `${value} tokens`;
}

function waitsFor({ reason, child_run_ids: ids = [] }) {
  if (reason !== "children") return `The run waits: ${reason}`;
  return `The run waits for ${ids.length} ${ids.length === 1 ? "subagent" : "subagents"}.`;
}
