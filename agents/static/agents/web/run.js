// The page of a run. Events come over the socket. The content beside the transcript comes from the summary.

import { CardList } from "./card_list.js";
import { keepTime } from "./clock.js";
import * as types from "./event_types.js";
import { gettext, interpolate, ngettext } from "./i18n.js";
import { listenToKeys } from "./queue_keys.js";
import { showStatus, showSummary } from "./side.js";
import { RunStream } from "./stream.js";
import { Subagents } from "./subagents.js";
import { toast } from "./toasts.js";
import { Transcript } from "./transcript.js";
import { ENDED, STATUS_AFTER, SubagentTree } from "./tree.js";

const APPLY_MILLISECONDS = 30;
const SUMMARY_MILLISECONDS = 300;
const QUIET_MILLISECONDS = 15_000;
const NEAR_BOTTOM = 120;
const EDGE = 16;

const page = document.getElementById("run");
const conversation = page.querySelector(".conversation");
const { run: runId, summaryUrl, runsUrl } = page.dataset;
const banner = document.getElementById("connection");
const csrf = document.querySelector("input[name=csrfmiddlewaretoken]").value;
const title = document.title;

const urlOf = (id) => `${runsUrl}${encodeURIComponent(id)}/`;
const tree = new SubagentTree(runId, {
  list: document.getElementById("subagents"),
  section: document.getElementById("subagents-section"),
  note: document.getElementById("waits"),
  urlOf,
});
const subagents = new Subagents(tree, urlOf);
const transcript = new Transcript(
  document.getElementById("transcript"), (data) => subagents.fold(data), urlOf(runId), follow,
);
const requests = document.getElementById("approvals");
const approvals = new CardList(requests, { csrf, back: "", isListed: false, runUrl: urlOf(runId) }, {
  decided(message) {
    toast(message);
    wantSummary();
  },
  changed() {},
});
keepTime(requests);
listenToKeys(approvals);
keepTime(page.querySelector(".run-head"));

// Until the first event: a run that waits for a worker has none.
const skeleton = document.getElementById("skeleton");
skeleton.hidden = false;

// Apply events in batches, so that the browser lays out the page only once for each batch.
let arrived = [];
// A page of a run that has ended stays where it is, and so does a page that was opened at a place.
const hadEnded = ENDED.has(page.dataset.status);
let isFollowing = !hadEnded && !location.hash;

function takeEvent(event) {
  if (arrived.length === 0) setTimeout(applyArrived, APPLY_MILLISECONDS);
  arrived.push(event);
}

function applyArrived() {
  const events = arrived;
  arrived = [];
  for (const event of events) apply(event);
  skeleton.remove();
  page.dataset.seq = stream.seen.get(runId);
  if (place) showPlace();
  else follow();
}

// A link of the trace names a place in the transcript: scroll there once its events have arrived.
let place = "";
try {
  place = decodeURIComponent(location.hash.slice(1));
} catch (error) {
  console.warn("the address names no place of the transcript", error);
}
if (!/^(call|step)=/.test(place)) place = "";

function showPlace() {
  const node = transcript.find(place);
  if (!node) return;
  place = "";
  isFollowing = false;
  for (let fold = node.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  node.scrollIntoView({ block: "center" });
  node.classList.add("linked");
}

/** Return how many pixels the end of the conversation is below the window. */
function below() {
  return conversation.getBoundingClientRect().bottom - innerHeight;
}

/** Scroll to the end of the conversation, unless the reader has scrolled up or is deciding a request. */
function follow() {
  const isDeciding = requests.contains(document.activeElement);
  if (isFollowing && !isDeciding && below() > -EDGE) scrollBy({ top: below() + EDGE });
}

function apply(event) {
  tree.apply(event);
  if (event.run_id === runId) applyOwn(event);
  if (SUMMARY_AFTER.has(event.type)) wantSummary();
}

function applyOwn(event) {
  transcript.apply(event);
  const status = STATUS_AFTER[event.type];
  if (status) showStatus(status);
  page.dispatchEvent(new CustomEvent("run-event", { detail: event }));
}

const SUMMARY_AFTER = new Set([
  types.RUN_STARTED, types.RUN_SUSPENDED, types.RUN_RESUMED, types.RUN_COMPLETED, types.RUN_FAILED, types.RUN_CANCELLED,
  types.APPROVAL_REQUESTED, types.APPROVAL_SECONDED, types.APPROVAL_DECIDED, types.APPROVAL_EXPIRED,
  types.MESSAGE_JOINED, types.SUBAGENT_STARTED, types.SUBAGENT_FINISHED, types.STEP_COMPLETED, types.TOOL_COMPLETED, types.TOOL_FAILED,
]);

addEventListener("scroll", () => {
  isFollowing = !hadEnded && below() <= NEAR_BOTTOM;
}, { passive: true });

// There is no event for a full disk, so check regularly whether the run waits for space.
setInterval(() => {
  const { status } = document.getElementById("status").dataset;
  if (status === "queued" || status === "running") wantSummary();
}, QUIET_MILLISECONDS);

// A part of the page has changed something, for example the messages that wait.
page.addEventListener("run-changed", () => wantSummary());

let summaryTimer = null;
let summaryNumber = 0;

function wantSummary() {
  summaryTimer ??= setTimeout(loadSummary, SUMMARY_MILLISECONDS);
}

async function loadSummary() {
  summaryTimer = null;
  summaryNumber += 1;
  const number = summaryNumber;
  let summary;
  try {
    const response = await fetch(summaryUrl, { headers: { accept: "application/json" } });
    if (!response.ok || response.redirected) return;
    summary = await response.json();
  } catch (error) {
    // The socket notices a lost connection too, and requests the summary when it is back.
    console.warn("the summary could not be loaded", error);
    return;
  }
  if (number !== summaryNumber) return;
  showSummary(summary, runId, runsUrl);
  approvals.update({ order: summary.approvals.map(({ id }) => id), cards: summary.approvals });
  showOthers(summary.for_others);
  page.dispatchEvent(new CustomEvent("run-summary", { detail: summary }));
  document.title = summary.approvals.length ? interpolate(gettext("● Waiting for you · %(title)s"), { title }) : title;
}

function showOthers(count) {
  const note = document.getElementById("for-others");
  note.textContent = interpolate(ngettext(
    "A request is waiting for an approver.", "%(count)s requests are waiting for an approver.", count,
  ), { count });
  note.hidden = count === 0;
}

function say(text) {
  banner.textContent = text;
  banner.hidden = !text;
}

const REFUSALS = {
  4401: gettext("You are signed out. Reload the page to sign in."),
  4404: gettext("This run no longer exists, or you no longer have permission to see it."),
};

const stream = new RunStream(runId, {
  event: takeEvent,
  answer() {},
  open() {
    say("");
    wantSummary();
  },
  lost() {
    say(gettext("Connection lost. Reconnecting…"));
  },
  refused(code) {
    say(REFUSALS[code] ?? gettext("The server refused the connection. Reload the page."));
  },
}, { tree: "brief" });
