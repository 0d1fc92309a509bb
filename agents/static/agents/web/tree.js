// The subagents of a run, with their tasks and statuses. Built from the events of the run and of its
// descendants, which can arrive in any order.

import * as types from "./event_types.js";
import { gettext, interpolate, ngettext } from "./i18n.js";
import { element, setText, visible } from "./text.js";

export const STATUS_AFTER = {
  [types.RUN_STARTED]: "running",
  [types.RUN_SUSPENDED]: "waiting",
  [types.RUN_RESUMED]: "queued",
  [types.STEP_STARTED]: "running",
  [types.RUN_COMPLETED]: "completed",
  [types.RUN_FAILED]: "failed",
  [types.RUN_CANCELLED]: "cancelled",
};
export const ENDED = new Set(["completed", "failed", "cancelled"]);
const STATUS_WORDS = {
  pending: gettext("pending"), queued: gettext("queued"), running: gettext("running"), waiting: gettext("waiting"),
  completed: gettext("completed"), failed: gettext("failed"), cancelled: gettext("cancelled"),
};
const REASONS = {
  approval: gettext("waiting for a decision"),
  budget: gettext("waiting for a budget"),
  children: gettext("waiting for subagents"),
};
const wordOf = (reason) =>
  REASONS[reason] ?? (reason ? interpolate(gettext("waiting for a %(reason)s"), { reason }) : undefined);

/** Return the word for the status of a run. */
export function statusWord(status) {
  return STATUS_WORDS[status] ?? visible(status);
}

export class SubagentTree {
  /** `list` is a `ul`. `note` shows what the run is waiting for. `urlOf(id)` is the page of a run. */
  constructor(rootId, { list, section, note, urlOf }) {
    this.rootId = rootId;
    this.shown = { list, section, note };
    this.urlOf = urlOf;
    this.members = new Map();
    this.names = new Map();
    this.awaited = [];
    this.badges = new Map();
  }

  apply({ run_id: runId, type, data }) {
    if (type === types.SUBAGENT_STARTED) this.started(runId, data);
    if (type === types.SUBAGENT_FINISHED) this.change(data.child_run_id, data.status);
    const status = STATUS_AFTER[type];
    if (!status) return;
    if (runId === this.rootId) {
      this.awaited = data.reason === "children" && status === "waiting" ? data.child_run_ids ?? [] : [];
      this.tellWaiting();
    } else {
      this.change(runId, status, status === "waiting" ? data.reason : "");
    }
  }

  member(id) {
    if (!this.members.has(id)) this.members.set(id, { id, status: "queued", reason: "", name: "", item: null });
    return this.members.get(id);
  }

  started(parentId, { child_run_id: id, name, status, task }) {
    const member = this.member(id);
    if (member.item) return;
    if (member.status === "queued") member.status = status ?? "queued";
    const count = (this.names.get(name) ?? 0) + 1;
    this.names.set(name, count);
    member.name = visible(count === 1 ? name ?? id : `${name} ${count}`);
    member.task = visible(task ?? "").replaceAll("\n", " ");
    member.below = element("ul", { class: "tree" });
    member.badge = element("span", { class: "status" });
    member.item = element(
      "li", {},
      element("div", { class: "member" }, element("a", { href: this.urlOf(id), title: member.task }, member.name), member.badge),
      element("div", { class: "task quiet" }, member.task), member.below,
    );
    (this.members.get(parentId)?.below ?? this.shown.list).append(member.item);
    this.shown.section.hidden = false;
    this.tell(member);
  }

  change(id, status, reason = "") {
    const member = this.member(id);
    if (ENDED.has(member.status)) return;
    Object.assign(member, { status, reason });
    this.tell(member);
    this.tellWaiting();
  }

  /** Show the status of a subagent in `badge`, now and after each change. */
  follow(id, badge) {
    if (!this.badges.has(id)) this.badges.set(id, []);
    this.badges.get(id).push(badge);
    this.tell(this.member(id));
  }

  tell(member) {
    const word = wordOf(member.reason) ?? statusWord(member.status);
    for (const badge of [member.badge, ...(this.badges.get(member.id) ?? [])]) {
      if (!badge) continue;
      badge.dataset.status = member.status;
      setText(badge, word);
    }
  }

  tellWaiting() {
    const left = this.awaited.map((id) => this.member(id)).filter(({ status }) => !ENDED.has(status));
    this.shown.note.hidden = left.length === 0;
    if (left.length === 0) return;
    const counts = new Map();
    for (const { status, reason } of left) {
      const word = wordOf(reason) ?? statusWord(status);
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    const parts = [...counts].map(([word, count]) => interpolate(gettext("%(count)s %(status)s"), { count, status: word })).join(", ");
    setText(this.shown.note, interpolate(ngettext(
      "Waiting for %(count)s subagent: %(parts)s", "Waiting for %(count)s subagents: %(parts)s", left.length,
    ), { count: left.length, parts }));
  }
}
