// The button of the queue that switches notifications on and off.

import { gettext } from "./i18n.js";
import { isOn, isSupported, setOn } from "./notify.js";
import { toast } from "./toasts.js";

const REFUSED = gettext("The browser does not allow notifications of this site. Allow them in the settings of the browser.");

/** Show the button if the browser can show notifications. */
export function offerNotifications(button) {
  const show = () => {
    button.setAttribute("aria-pressed", isOn());
    button.textContent = isOn() ? gettext("Notifications: on") : gettext("Notifications: off");
  };
  button.hidden = !isSupported;
  if (!isSupported) return;
  show();
  button.addEventListener("click", async () => {
    const isAllowed = await setOn(!isOn());
    show();
    if (!isAllowed) toast(REFUSED, { isProblem: true });
  });
}
