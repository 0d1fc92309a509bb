// The effect of unsaved rules on past calls. The server has made hidden characters visible.

import { html, nothing, render } from "../agents/vendor/lit.js";

function calls(title, list) {
  if (!list.length) return nothing;
  return html`<h4>${title}</h4>
    <div class="scrolls" tabindex="0" role="region" aria-label=${title}><table class="plain">
      <thead><tr><th scope="col">Call</th><th scope="col">Before</th><th scope="col">After</th><th scope="col">By</th><th scope="col">Input</th></tr></thead>
      <tbody>${list.map((call) => html`<tr>
        <th scope="row"><a href=${call.url}><code>${call.tool}</code></a></th>
        <td>${call.before}</td><td>${call.is_changed ? html`<strong>${call.after}</strong>` : call.after}</td>
        <td>${call.by}</td><td class="input">${call.input}</td></tr>`)}</tbody>
    </table></div>`;
}

function tools(list) {
  if (!list.length) return nothing;
  return html`<div class="scrolls" tabindex="0" role="region" aria-label="Calls by tool"><table class="plain">
    <thead><tr><th scope="col">Tool</th><th scope="col" class="number">Runs</th><th scope="col" class="number">Asks</th><th scope="col" class="number">Denied</th><th scope="col" class="number">Changed</th></tr></thead>
    <tbody>${list.map((each) => html`<tr><th scope="row"><code>${each.tool}</code></th>
      ${each.counts.map((count) => html`<td class="number">${count}</td>`)}<td class="number">${each.changed}</td></tr>`)}</tbody>
  </table></div>`;
}

/** Show the result of a rehearsal, or the reason why there is none. */
export function showRehearsal(place, found) {
  if (!place.dataset.live) {
    place.replaceChildren(); // the result that the page came with
    place.dataset.live = "true";
  }
  render(found.problem
    ? html`<p class="note problem">${found.problem}</p>`
    : html`<p><strong>${found.calls} ${found.calls === 1 ? "call" : "calls"}, ${found.changed} would change.</strong>${found.is_cut ? " There were more: these are the newest." : ""}</p>
      ${tools(found.tools)}${calls("Calls that would change", found.changes)}${calls("The newest calls", found.latest)}`, place);
}
