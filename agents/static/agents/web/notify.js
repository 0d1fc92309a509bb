// Notifications of the browser about new requests, while a page is open. The person switches them on in each browser.

import { gettext } from "./i18n.js";

const STORED = "vel-notifications";

let known = null;
let number = 0;

/** Whether the browser can show notifications of pages. Chrome on Android can show only those of a service worker. */
export const isSupported = "Notification" in window && !/android/i.test(navigator.userAgent);

export function isOn() {
  return isSupported && Notification.permission === "granted" && localStorage.getItem(STORED) === "on";
}

/** Switch notifications on or off, and ask for the permission. Returns false if the person refuses it. */
export async function setOn(wanted) {
  localStorage.setItem(STORED, wanted ? "on" : "off");
  known = null;
  return !wanted || (await Notification.requestPermission()) === "granted";
}

/** Notify the person about requests that are new on the server. `url` returns those that wait. */
export async function notifyAboutNew(url) {
  if (!isOn()) return;
  number += 1;
  const mine = number;
  let waiting;
  try {
    const response = await fetch(url, { headers: { accept: "application/json" } });
    if (!response.ok || response.redirected) return;
    waiting = (await response.json()).requests;
  } catch (error) {
    console.warn("the waiting requests could not be loaded", error);
    return;
  }
  if (mine !== number) return;
  const before = known;
  known = new Set(waiting.map(({ id }) => id));
  // The first answer has the requests from before this page.
  if (!before || (document.visibilityState === "visible" && document.hasFocus())) return;
  for (const request of waiting) if (!before.has(request.id)) show(request);
}

function show({ id, agent, tool, url }) {
  // Several open pages have the same tag: the browser shows one notification.
  const shown = new Notification(gettext("Waiting for your approval"), { body: `${agent}: ${tool}`, tag: `vel-${id}` });
  shown.addEventListener("click", () => {
    focus();
    location.assign(url);
    shown.close();
  });
}
