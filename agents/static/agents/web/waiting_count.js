// Updates the count of waiting requests: in the navigation, and on the icon of the installed app.

import { gettext, interpolate } from "./i18n.js";
import { notifyAboutNew } from "./notify.js";
import { followQueue } from "./queue_stream.js";

const badge = document.getElementById("waiting-count");

function showOnIcon(pending) {
  const done = pending > 0 ? navigator.setAppBadge?.(pending) : navigator.clearAppBadge?.();
  done?.catch((error) => console.warn("the icon cannot show the number of requests", error));
}

if (badge) {
  const url = new URL("waiting/", badge.closest("a").href);
  followQueue({
    changed({ pending }) {
      badge.textContent = pending;
      badge.setAttribute("aria-label", interpolate(gettext("%(count)s waiting"), { count: pending }));
      badge.hidden = pending === 0;
      showOnIcon(pending);
      notifyAboutNew(url);
    },
    refused() {
      showOnIcon(0);
    },
  });
}
