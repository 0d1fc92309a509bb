// Ctrl+K or Cmd+K opens a dialog that finds pages, conversations and agents.

const URL_OF_ENTRIES = document.querySelector(".brand")?.getAttribute("href");
const WAIT_MILLISECONDS = 120;

let palette = null;

async function open() {
  if (!palette) {
    const { Palette } = await import("./dialog.js");
    palette = new Palette(`${URL_OF_ENTRIES}palette/`, WAIT_MILLISECONDS);
  }
  palette.open();
}

addEventListener("keydown", (event) => {
  const isShortcut = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
  if (!isShortcut || event.isComposing || document.querySelector("dialog[open]:not(.palette)")) return;
  event.preventDefault();
  open();
}, { capture: true });
