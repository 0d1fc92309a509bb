// The messages and calls of an agent, in order. The result depends only on the events.

import { CallGroup } from "./call_group.js";
import * as types from "./event_types.js";
import { gettext, interpolate, ngettext } from "./i18n.js";
import { LongText } from "./long_text.js";
import { RenderedTexts } from "./said.js";
import { ToolCard } from "./tool.js";
import { element, plain, setText, visible } from "./text.js";

const DECISIONS = { approve: "approved", edit: "changed", reject: "rejected", respond: "answered" };
const DECIDED = {
  approve: [gettext("%(by)s approved"), gettext("%(by)s approved %(tool)s")],
  edit: [gettext("%(by)s changed"), gettext("%(by)s changed %(tool)s")],
  reject: [gettext("%(by)s rejected"), gettext("%(by)s rejected %(tool)s")],
  respond: [gettext("%(by)s answered"), gettext("%(by)s answered %(tool)s")],
};
const TRUST = { imported: gettext("imported, not reviewed"), local: gettext("from a directory on the server") };
const GUARDED = {
  input: gettext("the message"), output: gettext("a reply"), thinking: gettext("the model's thinking"),
  tool_call: gettext("a call"), tool_result: gettext("a result"),
};
const COMPACTED = {
  model: gettext("Earlier turns were summarised by the model: %(before)s tokens became %(after)s."),
  journal: gettext("Earlier turns were summarised from the journal, without the model: %(before)s tokens became %(after)s."),
  clipping: gettext("Long texts of earlier turns were cut: %(before)s tokens became %(after)s."),
};
const SCOPES = { run: gettext("run"), day: gettext("day"), month: gettext("month") };
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
      "details", { class: "fold thinking" }, element("summary", {}, gettext("Thinking")), said,
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
        this.note(interpolate(gettext("The model call is repeated: %(reason)s"), data));
        break;
      case types.MODEL_FALLBACK:
        this.note(interpolate(gettext("%(from_provider)s %(from_model)s is unavailable: %(provider)s %(model)s continues."), data));
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
        if (data.reason !== "approvals decided") this.note(interpolate(gettext("The run continues: %(reason)s"), data));
        break;
      case types.RUN_SUSPENDED:
        if (data.reason !== "approval") this.note(waitsFor(data));
        break;
      case types.MESSAGE_JOINED:
        this.joined(data);
        break;
      case types.SUBAGENT_STARTED:
        this.endGroup();
        this.root.append(this.subagent(data));
        break;
      case types.SKILL_LOADED:
        this.note(interpolate(gettext("Skill loaded: %(name)s (%(trust)s)"), {
          name: data.version ? `${data.name} ${data.version}` : data.name, trust: TRUST[data.trust] ?? data.trust,
        }));
        break;
      case types.SKILL_DEACTIVATED:
        this.note(interpolate(gettext("Skill deactivated: %(name)s"), data));
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
        this.note(interpolate(data.lost_host
          ? gettext("The host %(lost_host)s failed. The files are restored from the last snapshot; later changes are lost.")
          : gettext("The files were moved to the host %(host)s."), data), Boolean(data.lost_host));
        if (data.mcp_state === "lost") this.note(gettext("The state of the MCP programs is lost. They were restarted."), true);
        break;
      case types.BUDGET_WARNING:
        this.note(interpolate(gettext("Budget nearly used up: %(used)s of %(limit)s (limit of the %(scope)s)."), {
          used: amount(data, data.used), limit: amount(data, data.limit), scope: SCOPES[data.scope] ?? data.scope,
        }));
        break;
      case types.CONTEXT_COMPACTED:
        this.note(interpolate(COMPACTED[data.by] ?? COMPACTED.model, data));
        break;
      case types.OUTPUT_INVALID:
        this.note(interpolate(gettext("The answer does not match its schema: %(problems)s"), {
          problems: data.problems.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join("; "),
        }), true);
        break;
      case types.GUARD_STUCK:
        this.note(interpolate(data.action === "end"
          ? gettext("The agent repeats itself (%(kind)s, %(count)s times); the run ends.")
          : gettext("The agent repeats itself (%(kind)s, %(count)s times); it received a message about this."), data), true);
        break;
      case types.GUARD_BLOCKED:
        this.note(interpolate(gettext("The guardrail %(guardrail)s blocked %(stage)s: %(reason)s"), {
          ...data, stage: GUARDED[data.stage] ?? data.stage,
        }), true);
        break;
      case types.GUARD_REPLACED:
        this.note(interpolate(gettext("The guardrail %(guardrail)s changed %(stage)s."), {
          ...data, stage: GUARDED[data.stage] ?? data.stage,
        }));
        break;
      case types.HOOK_FAILED:
        this.note(interpolate(gettext("The hook %(hook)s %(message)s (%(point)s)."), data), true);
        break;
      case types.TOOL_RETRIED:
        this.note(interpolate(gettext("Retrying in %(retry_in)s s: %(message)s"), data));
        break;
      case types.RUN_COMPLETED:
        if ("structured_output" in data) this.value(data.structured_output);
        if (!QUIET_ENDS.has(data.finish_reason)) this.note(interpolate(gettext("Ended: %(finish_reason)s"), data), true);
        break;
      case types.RUN_FAILED:
        this.note(interpolate(gettext("Failed: %(message)s"), { message: data.message ?? data.code }), true);
        break;
      case types.RUN_CANCELLED:
        this.note(because(data.by ? interpolate(gettext("Cancelled by %(by)s"), data) : gettext("Cancelled"), data.reason), true);
        break;
    }
  }

  decided({ call_id: id, decision, by, reason }) {
    const card = this.tools.get(id);
    card?.setStatus(DECISIONS[decision] ?? decision);
    const [alone, withTool] = DECIDED[decision] ?? [`%(by)s ${decision}`, `%(by)s ${decision} %(tool)s`];
    this.note(because(interpolate(card ? withTool : alone, { by: by ?? gettext("Somebody"), tool: card?.tool }), reason));
  }

  joined({ text = "", files = [] }) {
    const said = element("div", { class: "asked", tabindex: "0", role: "group", "aria-label": gettext("Message during the work") });
    this.endGroup();
    this.root.append(element("div", {}, said));
    new LongText(said).set(text);
    const paths = [files].flat();
    if (paths.length) this.note(interpolate(gettext("Attached: %(files)s"), { files: paths.join(", ") }));
  }

  skipped({ problems = [], count = problems.length }) {
    const list = element("ul");
    for (const { skill, message } of problems) {
      const line = element("li");
      setText(line, `${skill}: ${message}`);
      list.append(line);
    }
    const title = element("summary");
    setText(title, interpolate(ngettext("%(count)s skill was skipped", "%(count)s skills were skipped", count), { count }));
    this.endGroup();
    this.root.append(element("details", { class: "fold" }, title, element("div", { class: "inside" }, list)));
  }

  value(answer) {
    const text = element("pre");
    setText(text, plain(answer));
    this.endGroup();
    this.root.append(element(
      "details", { class: "fold value", open: true }, element("summary", {}, gettext("Answer as data")), element("div", { class: "inside" }, text),
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
  if (count > changes.length) files.push(interpolate(gettext("%(count)s more files"), { count: count - changes.length }));
  const unseen = incomplete.map((place) => interpolate(gettext("not checked: %(place)s"), { place }));
  return interpolate(gettext("These files can run outside the sandbox later. Check them first: %(files)s"), {
    files: [...files, ...unseen].join("; "),
  });
}

/** Return `text`, with its reason if there is one. */
function because(text, reason) {
  return reason ? `${text}: ${reason}` : text;
}

function amount({ kind }, value) {
  return kind === "cost" ? `$${value}` : interpolate(gettext("%(count)s tokens"), { count: value });
}

function waitsFor({ reason, child_run_ids: ids = [] }) {
  if (reason !== "children") return interpolate(gettext("The run is waiting: %(reason)s"), { reason });
  return interpolate(ngettext(
    "The run is waiting for %(count)s subagent.", "The run is waiting for %(count)s subagents.", ids.length,
  ), { count: ids.length });
}
