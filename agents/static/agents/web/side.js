// The column beside the transcript: status, usage, files and the other runs of the conversation.

import { gettext, interpolate, ngettext } from "./i18n.js";
import { element, inBytes, inDigits, setText, visible } from "./text.js";
import { ENDED, statusWord } from "./tree.js";

const byId = (id) => document.getElementById(id);

/** Show the status of the run in its badge. */
export function showStatus(status) {
  const badge = byId("status");
  badge.dataset.status = status;
  badge.textContent = statusWord(status);
  const isOver = ENDED.has(status);
  for (const [id, isHidden] of [
    ["cancel", isOver], ["stop", isOver], ["again", !isOver], ["retry", status !== "failed"],
  ]) {
    const shown = byId(id);
    if (shown) shown.hidden = isHidden;
  }
}

/** Show the server's summary, except for the approval requests. */
export function showSummary(summary, runId, runsUrl) {
  showStatus(summary.status);
  showNote(summary.note);
  byId("tokens").textContent = inDigits(summary.tokens);
  const others = summary.members - 1;
  byId("family").textContent = others
    ? interpolate(ngettext("With %(count)s subagent.", "With %(count)s subagents.", others), { count: others })
    : "";
  showTime(summary);
  byId("turns").textContent = summary.turns;
  byId("cost").textContent = summary.cost === null ? gettext("unknown") : `$${inDigits(Number(summary.cost), { minimumFractionDigits: 4, useGrouping: false })}`;
  showFiles(summary.outputs);
  showThread(summary.thread, runId, runsUrl);
}

/** Show `text` while the run waits for disk space, or for a person after a restore. */
function showNote(text) {
  const note = byId("note");
  setText(note, text);
  note.hidden = !text;
}

let ticking = null;

/** Show the time since the first claim of the run, including waiting. */
function showTime({ started_at: started, ended_at: ended }) {
  clearInterval(ticking);
  const tell = () => {
    const seconds = Math.max(0, ((ended ? new Date(ended) : Date.now()) - new Date(started)) / 1000);
    byId("elapsed").textContent = started ? duration(seconds) : gettext("not started");
  };
  tell();
  if (started && !ended) ticking = setInterval(tell, 1000);
}

function duration(seconds) {
  const whole = Math.round(seconds);
  if (seconds < 10) return `${inDigits(seconds, { minimumFractionDigits: 1, maximumFractionDigits: 1 })} s`;
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

function showFiles({ files, is_cut: isCut, not_shown: notShown }) {
  byId("no-files").hidden = files.length > 0;
  const lines = files.map((file) => {
    const name = file.url ? element("a", { href: file.url, download: "" }) : element("span");
    setText(name, file.name);
    const line = element("li", {}, name, element("span", { class: "quiet" }, file.size === null ? "" : inBytes(file.size)));
    if (file.picture) line.append(thumbnail(file));
    return line;
  });
  if (isCut) lines.push(element("li", { class: "quiet" }, gettext("… and more")));
  if (notShown) lines.push(element("li", { class: "quiet" }, notShown));
  byId("files").replaceChildren(...lines);
}

/** Return a link with a picture. It is removed if the browser cannot load the picture. */
function thumbnail({ picture, name }) {
  const shown = element("img", { src: picture, alt: visible(name), loading: "lazy" });
  const link = element("a", { href: picture, class: "thumbnail" }, shown);
  shown.addEventListener("error", () => link.remove());
  return link;
}

function showThread(runs, runId, runsUrl) {
  byId("thread").replaceChildren(...runs.map((run) => {
    const link = element(
      "a", { href: `${runsUrl}${run.id}/`, title: run.text },
      element("span", { class: "status", "data-status": run.status }, statusWord(run.status)),
      run.text,
    );
    return element("li", { "aria-current": run.id === runId ? "page" : null }, link);
  }));
}
