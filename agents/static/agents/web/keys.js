// The keyboard shortcuts of all pages. Letters work only outside text fields.

const SECOND_KEY_MILLISECONDS = 1200;

const byId = (id) => document.getElementById(id);
const help = byId("site-keys");
const menu = byId("menu");

let isGoing = false;
let timer = null;

function go(key) {
  const link = document.querySelector(`.bar a[data-key="${CSS.escape(key)}"]`);
  if (link) location.assign(link.href);
}

function focusFirst(selector) {
  const field = document.querySelector(selector);
  if (!field) {
    if (selector === MESSAGE) location.assign(document.querySelector(".brand").href);
    return;
  }
  field.focus();
  field.scrollIntoView({ block: "nearest" });
}

const MESSAGE = "textarea[name=message]";
const SENT = `${MESSAGE}, textarea[data-sends]`;
const keys = {
  g: () => {
    isGoing = true;
    clearTimeout(timer);
    timer = setTimeout(() => (isGoing = false), SECOND_KEY_MILLISECONDS);
  },
  n: () => focusFirst(MESSAGE),
  "/": () => focusFirst("input[type=search]"),
  "?": () => help.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.isComposing || help.open) return;
  const isTyping = event.target.matches?.("textarea, select, input:not([type=checkbox]):not([type=radio])");
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && event.target.matches?.(SENT)) {
    event.target.form.requestSubmit();
    return;
  }
  if (event.key === "Escape") {
    if (event.target.hasAttribute?.("aria-activedescendant")) return; // closes the list of the field
    if (menu.open) {
      menu.open = false;
      menu.querySelector("summary").focus();
    } else if (isTyping && !event.target.closest(".approval")) {
      event.target.blur();
    }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping || event.repeat) return;
  if (isGoing) {
    isGoing = false;
    // "g a" opens the approvals. Stop here, because "a" alone would approve a request.
    event.preventDefault();
    event.stopImmediatePropagation();
    go(event.key);
    return;
  }
  if (Object.hasOwn(keys, event.key)) {
    event.preventDefault();
    keys[event.key]();
  }
}, { capture: true });

addEventListener("click", (event) => {
  if (menu.open && !menu.contains(event.target)) menu.open = false;
});

const button = byId("show-site-keys");
button.hidden = false;
button.addEventListener("click", () => {
  menu.open = false;
  help.showModal();
});
