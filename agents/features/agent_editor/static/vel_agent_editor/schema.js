// The output schema: examples to start from, and a check while it is written.

import { gettext } from "../agents/web/i18n.js";
import { setText } from "../agents/web/text.js";

const PAUSE = 500;

/** Check the schema of the form after each change, and offer examples while it is empty. */
export function helpWithSchema(form) {
  const area = document.getElementById("id_output_schema");
  const place = document.getElementById("schema");
  if (!area || !place) return;
  const examples = document.getElementById("schema-example");
  const result = document.getElementById("schema-result");
  const texts = new Set([...examples.options].map((option) => option.value));
  let timer = null;
  let number = 0;

  const check = async () => {
    number += 1;
    const mine = number;
    const data = new FormData(form);
    data.set("action", "schema");
    let found;
    try {
      const response = await fetch(form.getAttribute("action"), { method: "POST", body: data, headers: { accept: "application/json" } });
      const isJson = (response.headers.get("content-type") || "").includes("json");
      found = isJson ? await response.json() : { problem: gettext("The schema cannot be checked. Publish it to see why, or reload the page.") };
    } catch (error) {
      console.warn("the schema could not be checked", error);
      found = { problem: gettext("The server did not answer.") };
    }
    if (mine !== number) return;
    setText(result, found.problem || found.result);
    area.setAttribute("aria-invalid", Boolean(found.problem));
    result.classList.toggle("is-bad", Boolean(found.problem));
  };

  const changed = () => {
    // An example replaces the whole text, so never one that a person has written.
    examples.disabled = !texts.has(area.value.trim());
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE);
  };

  examples.closest("label").hidden = false;
  examples.disabled = !texts.has(area.value.trim());
  area.addEventListener("input", changed);
  examples.addEventListener("change", () => {
    area.value = examples.value;
    area.dispatchEvent(new Event("input", { bubbles: true }));
    area.focus();
  });
  place.querySelector("button").addEventListener("click", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    check();
  });
}
