// A subagent in a transcript: folded at first. While it is open, its own socket sends its events.

import { gettext, interpolate } from "./i18n.js";
import { RunStream } from "./stream.js";
import { element, setText, visible } from "./text.js";
import { Transcript } from "./transcript.js";
import { STATUS_AFTER, ENDED } from "./tree.js";

const REFUSED = {
  4401: gettext("You are signed out. Reload the page to sign in."),
  4404: gettext("You do not have permission to see this subagent, unless it has a request that you can decide."),
};

export class Subagents {
  /** `tree` is the page's `SubagentTree`; `urlOf(id)` is a run's page. */
  constructor(tree, urlOf) {
    this.tree = tree;
    this.urlOf = urlOf;
  }

  /** Return the element for an event `subagent.started`. */
  fold({ child_run_id: id, name, task }) {
    const badge = element("span", { class: "status" });
    const label = this.tree.members.get(id)?.name || visible(name ?? id);
    const link = element("a", { href: this.urlOf(id) }, interpolate(gettext("Open the run of %(name)s"), { name: label }));
    const problem = element("p", { class: "note", role: "status", hidden: "" });
    const said = element("div", { class: "transcript", role: "log", "aria-label": interpolate(gettext("Work of %(name)s"), { name: label }), "aria-live": "off" });
    const made = element(
      "details", { class: "fold subagent", "data-run": id },
      element(
        "summary", {}, element("span", { class: "name" }, `⤷ ${label}`),
        element("span", { class: "brief" }, visible(task ?? "").replaceAll("\n", " ")), badge,
      ),
      element("div", { class: "inside" }, element("p", { class: "quiet" }, link), problem, said),
    );
    this.tree.follow(id, badge);
    this.followWhileOpen(made, id, said, problem);
    return made;
  }

  followWhileOpen(fold, id, root, problem) {
    const transcript = new Transcript(root, (data) => this.fold(data), this.urlOf(id));
    const tell = (text) => {
      setText(problem, text);
      problem.hidden = !text;
    };
    let stream = null;
    let isOver = false;
    const on = {
      event: (event) => {
        transcript.apply(event);
        fold.dataset.seq = event.seq;
        isOver = ENDED.has(STATUS_AFTER[event.type]);
        if (isOver) stream.close();
      },
      answer() {},
      open: () => tell(""),
      lost: () => tell(gettext("Connection lost. Reconnecting…")),
      refused: (code) => tell(REFUSED[code] ?? gettext("The server refused the connection. Reload the page.")),
    };
    fold.addEventListener("toggle", () => {
      if (!fold.open) stream?.close();
      else if (stream === null) stream = new RunStream(id, on);
      else if (!isOver) stream.reopen();
    });
  }
}
