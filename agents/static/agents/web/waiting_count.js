// Updates the count beside "Approvals" in the navigation.

import { followQueue } from "./queue_stream.js";

const badge = document.getElementById("waiting-count");

if (badge) {
  followQueue({
    changed({ pending }) {
      badge.textContent = pending;
      badge.setAttribute("aria-label", `${pending} waiting`);
      badge.hidden = pending === 0;
    },
  });
}
