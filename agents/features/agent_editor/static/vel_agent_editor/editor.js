// The settings of an agent: tabs without a reload, a live rehearsal, and test runs beside the form.
// Without this script, each of them is a link or a button of a form.

import { gettext, interpolate } from "../agents/web/i18n.js";
import { element, inDigits } from "../agents/web/text.js";
import { showRehearsal } from "./rehearsal.js";
import { helpWithSchema } from "./schema.js";
import { tryBeside } from "./try.js";

const form = document.getElementById("definition");
const JSON_ONLY = { accept: "application/json" };

function openSection(link) {
  for (const panel of form.querySelectorAll(".editor-panel")) {
    const isChosen = panel.id === `panel-${link.dataset.section}`;
    panel.hidden = !isChosen;
    if (isChosen) panel.disabled = false; // The form sends the sections that were open.
  }
  for (const each of document.querySelectorAll(".editor-tabs a")) each.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  document.getElementById("section").value = link.dataset.section;
  history.replaceState(null, "", link.href);
}

function countTokens(text) {
  // The estimate of agents/engine/prompt/token_count.py.
  const bytes = new TextEncoder().encode(text).length;
  const characters = [...text].length;
  return Math.floor(characters / 3) + Math.floor(((bytes - characters) * 2) / 3) + 1;
}

function helpWithPrompt() {
  const prompt = document.getElementById("id_system_prompt");
  const tokens = document.getElementById("tokens");
  if (!prompt || !tokens) return;
  const count = () => { tokens.textContent = inDigits(countTokens(prompt.value)); };
  prompt.addEventListener("input", count);
  count();
  for (const code of document.querySelectorAll("#variables code")) {
    const name = code.textContent;
    const button = element("button", { type: "button", title: interpolate(gettext("Insert %(name)s"), { name }) }, name);
    button.addEventListener("click", () => {
      prompt.setRangeText(name, prompt.selectionStart, prompt.selectionEnd, "end");
      prompt.dispatchEvent(new Event("input", { bubbles: true }));
      prompt.focus();
    });
    code.replaceWith(button);
  }
}

function rehearseLive() {
  const panel = document.getElementById("panel-approval");
  const place = document.getElementById("rehearsal");
  if (!panel || !place) return;
  let timer = null;
  let number = 0;
  const rehearse = async () => {
    number += 1;
    const mine = number;
    const data = new FormData(form);
    data.set("action", "rehearse");
    try {
      const response = await fetch(form.getAttribute("action"), { method: "POST", body: data, headers: JSON_ONLY });
      const isJson = (response.headers.get("content-type") || "").includes("json");
      const found = isJson ? await response.json() : { problem: gettext("The rules cannot be rehearsed. Publish them to see why, or reload the page.") };
      if (mine === number) showRehearsal(place, found);
    } catch (error) {
      console.warn("the rules could not be rehearsed", error);
      if (mine === number) showRehearsal(place, { problem: gettext("The server did not answer.") });
    }
  };
  panel.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(rehearse, 500);
  });
  document.getElementById("rehearse").addEventListener("click", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    rehearse();
  });
}

function warnOfUnsaved() {
  const note = document.getElementById("unsaved");
  let isUnsaved = form.querySelector(".has-errors") !== null;
  form.addEventListener("input", () => {
    isUnsaved = true;
    note.textContent = gettext("Unsaved changes");
  });
  form.addEventListener("submit", () => { isUnsaved = false; });
  window.addEventListener("beforeunload", (event) => {
    if (isUnsaved) event.preventDefault();
  });
}

if (form) {
  for (const link of document.querySelectorAll(".editor-tabs a[data-section]")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      openSection(link);
    });
  }
  helpWithPrompt();
  rehearseLive();
  helpWithSchema(form);
  warnOfUnsaved();
}
tryBeside();
