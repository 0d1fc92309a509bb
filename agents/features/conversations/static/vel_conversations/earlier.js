// Shows the answers above a run's message as Markdown, and opens the page at the message.

import { showMarkdown } from "../agents/web/markdown.js";

const earlier = document.querySelector(".earlier");

function show() {
  for (const script of earlier.querySelectorAll("script[type='application/json']")) {
    const answer = script.previousElementSibling;
    showMarkdown(answer, JSON.parse(script.textContent), answer.dataset.runUrl);
  }
  // After a reload and on the way back, the browser restores the position itself.
  const type = performance.getEntriesByType("navigation")[0]?.type ?? "navigate";
  const place = document.getElementById(location.hash.slice(1));
  if (type !== "navigate") return;
  if (place && earlier.contains(place)) place.scrollIntoView();
  else if (!location.hash) earlier.parentElement.querySelector(":scope > .asked").scrollIntoView();
}

if (earlier) show();
