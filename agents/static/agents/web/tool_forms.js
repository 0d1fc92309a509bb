// The forms of tools' inputs and outputs, by tool. Features add forms: see agents/doors/web/tool_forms.py.
// All contents come from models, tools and files: a form shows them as text.

import { gettext, interpolate } from "./i18n.js";
import { jsonTree } from "./tool_forms/json.js";
import { fileForm } from "./tool_forms/file.js";
import { tableForm } from "./tool_forms/table.js";
import { terminalForm } from "./tool_forms/terminal.js";
import { parse } from "./stream.js";

const TOOLS = new Map(Object.entries(JSON.parse(document.getElementById("run")?.dataset.toolForms ?? "{}")));
const FORMS = new Map([["file", fileForm], ["table", tableForm], ["terminal", terminalForm]]);

/**
 * Add a form. `input(input, context)` and `output(text, context)` return nodes, or null if the
 * content does not fit; both are optional. With `isWhole`, a cut output is loaded when a reader opens
 * the call. `context` has `tool`, `code` ([field, language]), `runUrl` and the latest `input`.
 */
export function addForm(name, form) {
  FORMS.set(name, form);
}

export function formOf(tool) {
  return FORMS.get(TOOLS.get(tool)?.form) ?? {};
}

/** Return the field of the tool's input with code, and the language. */
export function codeOf(tool) {
  return TOOLS.get(tool)?.code ?? [];
}

/** Return what the agent did in one call, and in several. */
export function wordsOf(tool) {
  const [once, several] = TOOLS.get(tool)?.words ?? ["", ""];
  if (once) return [once, several];
  return [gettext("called %(tool)s"), gettext("called %(tool)s # times")].map((text) => interpolate(text, { tool }));
}

/** Return a tree for an object or a list as JSON text, or null. */
export function treeOf(text) {
  const value = jsonOf(text);
  return value === null ? null : [jsonTree(value)];
}

/** Return the object or list of a JSON text, or null. */
export function jsonOf(text) {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    return parse(text);
  } catch {
    return null; // cut, or not JSON
  }
}
