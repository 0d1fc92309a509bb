// Updates ages and countdowns: `<time data-clock="since">` and `<time data-clock="until">`.

import { gettext, interpolate } from "./i18n.js";

const SECONDS = 1;
const MINUTES = 60 * SECONDS;
const HOURS = 60 * MINUTES;
const DAYS = 24 * HOURS;
const SOON = HOURS;

/** Update the times in `root` every second. */
export function keepTime(root) {
  const tick = () => showTimes(root);
  tick();
  setInterval(tick, 1000);
}

export function showTimes(root) {
  for (const shown of root.querySelectorAll("time[data-clock]")) {
    const seconds = Math.round((new Date(shown.dateTime) - Date.now()) / 1000);
    const text = shown.dataset.clock === "since" ? since(-seconds) : until(seconds);
    if (shown.textContent !== text) shown.textContent = text;
    if (shown.dataset.clock === "until") shown.classList.toggle("soon", seconds < SOON);
  }
}

function since(seconds) {
  return seconds < MINUTES ? gettext("just now") : interpolate(gettext("%(time)s ago"), { time: roughly(seconds) });
}

function until(seconds) {
  return seconds > 0 ? interpolate(gettext("expires in %(time)s"), { time: exactly(seconds) }) : gettext("has expired");
}

function exactly(seconds) {
  if (seconds >= HOURS) return roughly(seconds);
  const two = (number) => String(number).padStart(2, "0");
  return `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
}

function roughly(seconds) {
  if (seconds >= 2 * DAYS) return interpolate(gettext("%(days)s days"), { days: Math.floor(seconds / DAYS) });
  if (seconds >= HOURS) return `${Math.floor(seconds / HOURS)} h ${Math.floor((seconds % HOURS) / 60)} min`;
  return `${Math.floor(seconds / MINUTES)} min`;
}
