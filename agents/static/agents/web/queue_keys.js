// The keyboard shortcuts of requests, in the queue and on the page of a run. Letters work only outside text fields.

/** `list` is a CardList. `helpButton`, if any, opens the list of the shortcuts. */
export function listenToKeys(list, helpButton = null) {
  const help = document.getElementById("site-keys");
  const current = () => list.cards.get(document.activeElement?.closest?.("article.approval")?.dataset.approval);

  const move = (step) => {
    const shown = list.shown;
    const place = shown.indexOf(current());
    const next = place < 0 ? (step > 0 ? 0 : shown.length - 1) : place + step;
    const card = shown[Math.max(0, Math.min(shown.length - 1, next))];
    card?.root.focus();
    card?.root.scrollIntoView({ block: "nearest" });
  };
  const toggleSelected = (card) => card.root.querySelector("input[name=selected]")?.click();
  const click = (card, selector) => card.root.querySelector(selector)?.click();
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    a: () => withCard((card) => click(card, "button[value=approve]")),
    r: () => withCard((card) => card.open("reject")),
    e: () => withCard((card) => card.open("edit")),
    x: () => withCard(toggleSelected),
    o: () => withCard((card) => click(card, "a.run-link")),
  };

  function withCard(act) {
    const card = current();
    if (card) act(card);
    else move(1);
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
    const isTyping = event.target.matches("textarea, select, input:not([type=checkbox]):not([type=radio])");
    if (event.key === "Escape" && isTyping) {
      const panel = event.target.closest("details.panel");
      event.target.blur();
      if (panel && !current() && list.root.contains(panel)) panel.closest("article").focus();
      return;
    }
    const act = keys[event.key];
    // Holding a key down must approve only one request.
    if (isTyping || !act || list.shown.length === 0 || (event.repeat && event.key !== "j" && event.key !== "k")) return;
    event.preventDefault();
    act();
  });
  if (!helpButton) return;
  helpButton.hidden = false;
  helpButton.addEventListener("click", () => help.showModal());
}
