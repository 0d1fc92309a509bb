// The messages and calls of an agent, in order. The result depends only on the events.

import { CallGroup } from "./call_group.js";
import * as types from "./event_types.js";
import { LongText } from "./long_text.js";
import { RenderedTexts } from "./said.js";
import { ToolCard } from "./tool.js";
import { element, plain, setText, visible } from "./text.js";

const DECISIONS = { approve: "approved", edit: "changed", reject: "rejected", respond: "answered" };
const TRUST = { imported: "imported, not reviewed", local: "from a directory on the server" };
const GUARDED = {
  input: "the message", output: "a reply", thinking: "the model's thinking", tool_call: "a call", tool_result: "a result",
};
const COMPACTED = {
  model: "Earlier turns were summarised by the model",
  journal: "Earlier turns were summarised from the journal, without the model",
  clipping: "Long texts of earlier turns were cut",
};
const PARTS = {
  [types.TEXT_STARTED]: "text", [types.TEXT_DELTA]: "text", [types.TEXT_COMPLETED]: "text",
  [types.REASONING_STARTED]: "reasoning", [types.REASONING_DELTA]: "reasoning", [types.REASONING_COMPLETED]: "reasoning",
};
const DELTAS = new Set([types.TEXT_DELTA, types.REASONING_DELTA]);
const WHOLE_PARTS = new Set([types.TEXT_COMPLETED, types.REASONING_COMPLETED]);
const CALLS = new Set([
  types.TOOL_INPUT_STARTED, types.TOOL_INPUT_DELTA, types.TOOL_CALLED, types.TOOL_REJECTED, types.TOOL_STARTED,
  types.TOOL_PROGRESS, types.TOOL_COMPLETED, types.TOOL_FAILED, types.TOOL_DENIED,
]);
const QUIET_ENDS = new Set(["end_turn", "stop_sequence", undefined, null, ""]);

export class Transcript {
  /**
   * `subagent(data)` returns the element for an event `subagent.started`. `runUrl` is the page of
   * the run. Calls `changed()` when an element that is already shown has changed its size.
   */
  constructor(root, subagent, runUrl, changed) {
    this.root = root;
    this.subagent = subagent;
    this.runUrl = runUrl;
    this.rendered = new RenderedTexts(runUrl, changed);
    this.parts = new Map();
    this.tools = new Map();
    // Elements of the current model call. They are removed if the call is repeated.
    this.unfinished = new Map();
    // The first element of each model call, by its number.
    this.steps = new Map();
    this.step = null;
    // The calls since the last text.
    this.group = null;
  }

  /** Return the element of a call or of a model call: `call=ID` or `step=NUMBER`. */
  find(place) {
    const [kind, id] = [place.slice(0, 5), place.slice(5)];
    if (kind === "call=") return this.tools.get(id)?.root;
    return kind === "step=" ? this.steps.get(Number(id)) : undefined;
  }

  /** Append an element of the current model call; `card` is the call that it shows. */
  append(node, card = null) {
    if (!card) this.endGroup();
    this.root.append(node);
    if (!this.steps.get(this.step)?.isConnected) this.steps.set(this.step, node);
    if (!card) return;
    this.group ??= new CallGroup();
    this.group.add(card);
  }

  endGroup() {
    this.group?.close();
    this.group = null;
  }

  apply({ type, data, seq }) {
    if (Object.hasOwn(PARTS, type)) this.applyPart(type, data, seq);
    else if (CALLS.has(type)) this.applyTool(type, data);
    else this.applyOther(type, data);
  }

  applyPart(type, { part_id: id, text = "" }, seq) {
    const kind = PARTS[type];
    const key = `${kind} ${id}`;
    if (!this.unfinished.has(key)) this.parts.set(key, this.addPart(kind, key));
    const part = this.parts.get(key);
    if (DELTAS.has(type)) part.append(text);
    if (WHOLE_PARTS.has(type)) {
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
    this.append(shown);
    this.unfinished.set(key, shown);
    return new LongText(said);
  }

  applyTool(type, data) {
    const id = data.call_id;
    const begins = type === types.TOOL_INPUT_STARTED || type === types.TOOL_CALLED || type === types.TOOL_REJECTED;
    let card = this.tools.get(id);
    if (!card || (begins && card.isCalled)) {
      card = new ToolCard(data.tool ?? "tool", id, this.runUrl);
      this.tools.set(id, card);
      this.append(card.root, card);
      this.unfinished.set(id, card.root);
    }
    card.apply(type, data);
    if (card.isCalled) this.unfinished.delete(id);
  }

  applyOther(type, data) {
    switch (type) {
      case types.STEP_STARTED:
        this.step = data.step;
        this.unfinished.clear();
        break;
      case types.STEP_RESET:
        for (const node of this.unfinished.values()) node.remove();
        this.unfinished.clear();
        this.note(`The model call is repeated: ${data.reason}`);
        break;
      case types.MODEL_FALLBACK:
        this.note(`${data.from_provider} ${data.from_model} is unavailable: ${data.provider} ${data.model} continues.`);
        break;
      case types.SANDBOX_CONNECTION:
        this.tools.get(data.call_id)?.addConnection(data);
        break;
      case types.APPROVAL_REQUESTED:
        this.tools.get(data.call_id)?.setStatus("waiting");
        break;
      case types.APPROVAL_DECIDED:
        this.decided(data);
        break;
      case types.RUN_RESUMED:
        if (data.reason !== "approvals decided") this.note(`The run continues: ${data.reason}`);
        break;
      case types.RUN_SUSPENDED:
        if (data.reason !== "approval") this.note(waitsFor(data));
        break;
      case types.SUBAGENT_STARTED:
        this.endGroup();
        this.root.append(this.subagent(data));
        break;
      case types.SKILL_LOADED:
        this.note(`Skill loaded: ${data.name}${data.version ? ` ${data.version}` : ""} (${TRUST[data.trust] ?? data.trust})`);
        break;
      case types.SKILL_DEACTIVATED:
        this.note(`Skill deactivated: ${data.name}`);
        break;
      case types.SKILLS_SKIPPED:
        this.skipped(data);
        break;
      case types.UPLOADS_READY:
        for (const { path, note } of data.files) if (note) this.note(`${path}: ${note}`);
        break;
      case types.WORKSPACE_RUNS_OUTSIDE:
        this.note(runsOutside(data), true);
        break;
      case types.WORKSPACE_MOVED:
        this.note(data.lost_host
          ? `The host ${data.lost_host} failed. The files are restored from the last snapshot; later changes are lost.`
          : `The files were moved to the host ${data.host}.`, Boolean(data.lost_host));
        if (data.mcp_state === "lost") this.note("The state of the MCP programs is lost. They were restarted.", true);
        break;
      case types.BUDGET_WARNING:
        this.note(`Budget nearly used up: ${amount(data, data.used)} of ${amount(data, data.limit)} (limit of the ${data.scope}).`);
        break;
      case types.CONTEXT_COMPACTED:
        this.note(`${COMPACTED[data.by] ?? COMPACTED.model}: ${data.before} tokens became ${data.after}.`);
        break;
      case types.OUTPUT_INVALID:
        this.note(`The answer does not match its schema: ${data.problems.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join("; ")}`, true);
        break;
      case types.GUARD_STUCK:
        this.note(`The agent repeats itself (${data.kind}, ${data.count} times); ${data.action === "end" ? "the run ends" : "it received a message about this"}.`, true);
        break;
      case types.GUARD_BLOCKED:
        this.note(`The guardrail ${data.guardrail} blocked ${GUARDED[data.stage] ?? data.stage}: ${data.reason}`, true);
        break;
      case types.GUARD_REPLACED:
        this.note(`The guardrail ${data.guardrail} changed ${GUARDED[data.stage] ?? data.stage}.`);
        break;
      case types.HOOK_FAILED:
        this.note(`The hook ${data.hook} ${data.message} (${data.point}).`, true);
        break;
      case types.TOOL_RETRIED:
        this.note(`Retrying in ${data.retry_in} s: ${data.message}`);
        break;
      case types.RUN_COMPLETED:
        if ("structured_output" in data) this.value(data.structured_output);
        if (!QUIET_ENDS.has(data.finish_reason)) this.note(`Ended: ${data.finish_reason}`, true);
        break;
      case types.RUN_FAILED:
        this.note(`Failed: ${data.message ?? data.code}`, true);
        break;
      case types.RUN_CANCELLED:
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
    setText(title, count === 1 ? "1 skill was skipped" : `${count} skills were skipped`);
    this.endGroup();
    this.root.append(element("details", { class: "fold" }, title, element("div", { class: "inside" }, list)));
  }

  value(answer) {
    const text = element("pre");
    setText(text, plain(answer));
    this.endGroup();
    this.root.append(element(
      "details", { class: "fold value", open: true }, element("summary", {}, "Answer as data"), element("div", { class: "inside" }, text),
    ));
  }

  note(text, isBad = false) {
    this.endGroup();
    const line = element("div", { class: isBad ? "event bad" : "event" });
    setText(line, text);
    this.root.append(line);
  }
}

function runsOutside({ changes, count, incomplete }) {
  const files = changes.map(({ path, what, why }) => `${what} ${path} (${why})`);
  if (count > changes.length) files.push(`${count - changes.length} more files`);
  const unseen = incomplete.map((place) => `not checked: ${place}`);
  return `These files can run outside the sandbox later. Check them first: ${[...files, ...unseen].join("; ")}`;
}

function amount({ kind }, value) {
  return kind === "cost" ? `$${value}` : `${value} tokens`;
}

function waitsFor({ reason, child_run_ids: ids = [] }) {
  if (reason !== "children") return `The run is waiting: ${reason}`;
  return `The run is waiting for ${ids.length} ${ids.length === 1 ? "subagent" : "subagents"}.`;
}
