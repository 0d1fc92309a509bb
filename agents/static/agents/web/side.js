// Beside the transcript: status, plan, usage, files and the conversation's other runs.

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
}

export function showTodos(todos) {
  byId("no-todos").hidden = todos.length > 0;
  byId("todos").replaceChildren(...todos.map((todo) => {
    const text = element("span");
    setText(text, todo.note ? `${todo.content} (${todo.note})` : todo.content);
    return element("li", { "data-status": todo.status }, text);
  }));
}

/** All that the server's summary tells, except the requests for approval. */
export function showSummary(summary, runId, runsUrl) {
  showStatus(summary.status);
  byId("tokens").textContent = summary.tokens.toLocaleString("en");
  byId("turns").textContent = summary.turns;
  byId("cost").textContent = summary.cost === null ? "unknown" : `$${summary.cost}`;
  showFiles(summary.outputs);
  showThread(summary.thread, runId, runsUrl);
}

function showFiles({ files, is_cut: isCut }) {
  byId("no-files").hidden = files.length > 0;
  const lines = files.map((file) => {
    const name = file.url ? element("a", { href: file.url, download: "" }) : element("span");
    setText(name, file.name);
    return element("li", {}, name, element("span", { class: "quiet" }, size(file.size)));
  });
  if (isCut) lines.push(element("li", { class: "quiet" }, "… and more"));
  byId("files").replaceChildren(...lines);
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
