// Shows the plan beside the transcript of a run.

import * as types from "../agents/web/event_types.js";
import { element, setText } from "../agents/web/text.js";

const list = document.getElementById("todos");
const heading = document.getElementById("current-task");
const empty = document.getElementById("no-todos");

function show(currentTask, todos) {
  empty.hidden = todos.length > 0 || currentTask !== "";
  heading.hidden = currentTask === "";
  setText(heading, currentTask);
  list.replaceChildren(...todos.map((todo) => {
    const text = element("span");
    setText(text, todo.note ? `${todo.content} (${todo.note})` : todo.content);
    return element("li", { "data-status": todo.status }, text);
  }));
}

document.getElementById("run").addEventListener("run-event", ({ detail: event }) => {
  if (event.type === types.TODOS_UPDATED) {
    show(event.data.current_task ?? "", event.data.todos ?? []);
  }
});
