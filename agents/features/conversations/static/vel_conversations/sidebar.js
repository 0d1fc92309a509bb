// Keeps the status dots and the titles beside a run up to date while the page is visible.

const EVERY_MILLISECONDS = 10_000;
const list = document.querySelector(".conversations");

async function update() {
  if (document.hidden || list.offsetParent === null) return;
  let statuses;
  try {
    const response = await fetch(list.dataset.statusesUrl, { headers: { accept: "application/json" } });
    if (!response.ok || response.redirected) return;
    statuses = await response.json();
  } catch (error) {
    console.warn("the statuses of the conversations could not be loaded", error);
    return;
  }
  for (const row of list.querySelectorAll("[data-thread]")) {
    const found = statuses[row.dataset.thread];
    const dot = row.querySelector(".dot");
    if (!found || !dot) continue;
    dot.dataset.status = found.status;
    dot.setAttribute("aria-label", found.text);
    const title = row.querySelector(".what");
    if (title.textContent !== found.title) title.textContent = found.title;
  }
}

document.addEventListener("visibilitychange", update);
setInterval(update, EVERY_MILLISECONDS);
