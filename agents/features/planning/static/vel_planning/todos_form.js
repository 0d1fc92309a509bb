// The form of write_todos: a list with the status of each item.

import { gettext, interpolate } from "../agents/web/i18n.js";
import { element, setText } from "../agents/web/text.js";
import { addForm, jsonOf } from "../agents/web/tool_forms.js";

const COUNTS = {
  pending: gettext("%(count)s pending"), in_progress: gettext("%(count)s in progress"),
  completed: gettext("%(count)s completed"), blocked: gettext("%(count)s blocked"),
};

addForm("vel_planning", {
  input(input, { others }) {
    if (!Array.isArray(input?.todos)) return null;
    const { todos, ...rest } = input;
    const list = element("ul", { class: "todos" }, ...todos.map(item));
    return [list, ...others(rest)];
  },

  output(text) {
    const counts = jsonOf(text)?.counts;
    if (counts === null || typeof counts !== "object") return null;
    const shown = element("p", { class: "quiet" });
    const parts = Object.entries(counts).filter(([, count]) => count).map(([status, count]) =>
      interpolate(Object.hasOwn(COUNTS, status) ? COUNTS[status] : `%(count)s ${status}`, { count }));
    setText(shown, parts.join(", ") || gettext("The plan is empty."));
    return [shown];
  },
});

function item(todo) {
  // Items of a cut input are texts.
  const { content = todo, task = content, status = "pending", note = "" } = Object(todo);
  const text = element("span");
  setText(text, note ? `${task} (${note})` : String(task));
  return element("li", { "data-status": status }, text);
}
