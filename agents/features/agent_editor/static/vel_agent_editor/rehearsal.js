// The effect of unsaved rules on past calls. The server has made hidden characters visible.

import { html, nothing, render } from "../agents/vendor/lit.js";
import { gettext, interpolate, ngettext } from "../agents/web/i18n.js";

function calls(title, list) {
  if (!list.length) return nothing;
  return html`<h4>${title}</h4>
    <div class="scrolls" tabindex="0" role="region" aria-label=${title}><table class="plain">
      <thead><tr>${[gettext("Call"), gettext("Before"), gettext("After"), gettext("By"), gettext("Input")]
        .map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${list.map((call) => html`<tr>
        <th scope="row"><a href=${call.url}><code>${call.tool}</code></a></th>
        <td>${call.before}</td><td>${call.is_changed ? html`<strong>${call.after}</strong>` : call.after}</td>
        <td>${call.by}</td><td class="input">${call.input}</td></tr>`)}</tbody>
    </table></div>`;
}

function tools(list) {
  if (!list.length) return nothing;
  return html`<div class="scrolls" tabindex="0" role="region" aria-label=${gettext("Calls by tool")}><table class="plain">
    <thead><tr><th scope="col">${gettext("Tool")}</th>${[gettext("Runs"), gettext("Asks"), gettext("Denied"), gettext("Changed")]
      .map((name) => html`<th scope="col" class="number">${name}</th>`)}</tr></thead>
    <tbody>${list.map((each) => html`<tr><th scope="row"><code>${each.tool}</code></th>
      ${each.counts.map((count) => html`<td class="number">${count}</td>`)}<td class="number">${each.changed}</td></tr>`)}</tbody>
  </table></div>`;
}

function summary(found) {
  return interpolate(ngettext(
    "%(calls)s call, %(changed)s would change.", "%(calls)s calls, %(changed)s would change.", found.calls,
  ), found);
}

/** Show the result of a rehearsal, or the reason why there is none. */
export function showRehearsal(place, found) {
  if (!place.dataset.live) {
    place.replaceChildren(); // the result that the page came with
    place.dataset.live = "true";
  }
  render(found.problem
    ? html`<p class="note problem">${found.problem}</p>`
    : html`<p><strong>${summary(found)}</strong>${found.is_cut ? ` ${gettext("There were more: these are the newest.")}` : ""}</p>
      ${tools(found.tools)}${calls(gettext("Calls that would change"), found.changes)}${calls(gettext("The newest calls"), found.latest)}`, place);
}
