// The page of the queue. Cards are added and removed while it is open.

import { CardList } from "./card_list.js";
import { keepTime } from "./clock.js";
import { gettext } from "./i18n.js";
import { offerNotifications } from "./notify_button.js";
import { listenToKeys } from "./queue_keys.js";
import { followQueue } from "./queue_stream.js";
import { Several } from "./several.js";
import { toast } from "./toasts.js";

const PAUSE_MILLISECONDS = 150;

const byId = (id) => document.getElementById(id);
const queue = byId("queue");
const isPending = queue.dataset.tab === "pending";
const csrf = document.querySelector("input[name=csrfmiddlewaretoken]").value;
const back = location.search.replace(/^\?/, "");
const title = document.title.replace(/^\(\d+\) /, "");

const list = new CardList(queue, { csrf, back, isListed: true }, {
  decided(message) {
    toast(message);
    wantChanges();
  },
  changed() {
    byId("none").hidden = list.shown.length > 0;
    several?.count();
  },
});
const several = isPending ? new Several(byId("several"), list, wantChanges) : null;
keepTime(queue);
listenToKeys(list, byId("show-keys"));
offerNotifications(byId("notifications"));

let timer = null;
let number = 0;

function wantChanges() {
  timer ??= setTimeout(loadChanges, PAUSE_MILLISECONDS);
}

async function loadChanges() {
  timer = null;
  number += 1;
  const mine = number;
  const query = new URLSearchParams(location.search);
  query.set("known", list.names.join(","));
  let changes;
  try {
    const response = await fetch(`${queue.dataset.liveUrl}?${query}`, { headers: { accept: "application/json" } });
    if (!response.ok || response.redirected) return;
    changes = await response.json();
  } catch (error) {
    // The socket notices a lost connection too, and requests the changes when it is back.
    console.warn("the queue could not be loaded", error);
    return;
  }
  if (mine !== number) return;
  list.update(changes);
  showCount(changes.pending);
  if (changes.fitting !== null) {
    byId("fitting").textContent = changes.fitting;
    byId("total").hidden = changes.fitting === 0;
  }
  byId("next-page").hidden = !changes.next_query;
  if (changes.next_query) byId("next-page").href = changes.next_query;
}

function showCount(pending) {
  byId("pending-count").textContent = pending;
  byId("pending-count").hidden = pending === 0;
  document.title = pending ? `(${pending}) ${title}` : title;
}

function connection(text) {
  byId("connection").textContent = text;
  byId("connection").hidden = !text;
}

followQueue({
  changed({ pending }) {
    connection("");
    showCount(pending);
    wantChanges();
  },
  lost() {
    connection(gettext("Connection lost. Reconnecting…"));
  },
  refused() {
    connection(gettext("You are signed out. Reload the page to sign in."));
  },
});
