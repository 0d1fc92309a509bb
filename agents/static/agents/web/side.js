// Beside the transcript: status, usage, files and the conversation's other runs.

import { element, setText, visible } from "./text.js";
import { ENDED } from "./tree.js";

const WORDS = {
  pending: "pending", queued: "queued", running: "running", waiting: "waiting",
  completed: "completed", failed: "failed", cancelled: "cancelled",
};

const byId = (id) => document.getElementById(id);

/** A run's status in its badge. */
export function showStatus(status) {
  const badge = byId("status");
  badge.dataset.status = status;
  badge.textContent = WORDS[status] ?? visible(status);
  const cancel = byId("cancel");
  if (cancel) cancel.hidden = ENDED.has(status);
  const again = byId("again");
  if (again) again.hidden = !ENDED.has(status);
}

/** All that the server's summary tells, except the requests for approval. */
export function showSummary(summary, runId, runsUrl) {
  showStatus(summary.status);
  showSpace(summary.waiting_for_space);
  byId("tokens").textContent = summary.tokens.toLocaleString("en");
  const others = summary.members - 1;
  byId("family").textContent = others ? `With ${others} ${others === 1 ? "subagent" : "subagents"}.` : "";
  showTime(summary);
  byId("turns").textContent = summary.turns;
  byId("cost").textContent = summary.cost === null ? "unknown" : `$${summary.cost}`;
  showFiles(summary.outputs);
  showThread(summary.thread, runId, runsUrl);
}

/** That the run waits for room on the server's disk, while it does. */
function showSpace(text) {
  const note = byId("space");
  setText(note, text);
  note.hidden = !text;
}

let ticking = null;

/** How long it has taken, or takes: from its first claim on, waiting included. */
function showTime({ started_at: started, ended_at: ended }) {
  clearInterval(ticking);
  const tell = () => {
    const seconds = Math.max(0, ((ended ? new Date(ended) : Date.now()) - new Date(started)) / 1000);
    byId("elapsed").textContent = started ? duration(seconds) : "not begun";
  };
  tell();
  if (started && !ended) ticking = setInterval(tell, 1000);
}

function duration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${seconds < 10 ? seconds.toFixed(1) : whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

function showFiles({ files, is_cut: isCut, not_shown: notShown }) {
  byId("no-files").hidden = files.length > 0;
  const lines = files.map((file) => {
    const name = file.url ? element("a", { href: file.url, download: "" }) : element("span");
    setText(name, file.name);
    const line = element("li", {}, name, element("span", { class: "quiet" }, size(file.size)));
    if (file.picture) line.append(thumbnail(file));
    return line;
  });
  if (isCut) lines.push(element("li", { class: "quiet" }, "… and more"));
  if (notShown) lines.push(element("li", { class: "quiet" }, notShown));
  byId("files").replaceChildren(...lines);
}

/** A picture, which opens by itself. What is none after all goes away. */
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
      element("span", { class: "status", "data-status": run.status }, WORDS[run.status] ?? run.status),
      run.text,
    );
    return element("li", { "aria-current": run.id === runId ? "page" : null }, link);
  }));
}

function size(bytes) {
  if (bytes === null) return "";
  if (bytes < 1000) return `${bytes} B`;
  const power = Math.min(3, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1000 ** power).toPrecision(3)} ${["B", "kB", "MB", "GB"][power]}`;
}
