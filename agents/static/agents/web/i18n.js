// Translates the texts of scripts. Without a catalog, texts stay English.
// The base template loads the catalog (Django's JavaScriptCatalog) on pages in other languages.

// The globals, not `django.gettext`: the admin's `jquery.init.js` replaces `django`.
const catalog = typeof globalThis.gettext === "function" ? globalThis : null;

/** Return the translation of `text`. */
export function gettext(text) {
  return catalog ? catalog.gettext(text) : text;
}

/** Return the translation of `text`, which has several meanings. `context` says which one. */
export function pgettext(context, text) {
  return catalog ? catalog.pgettext(context, text) : text;
}

/** Return the translation of `singular` or `plural` for `count`. */
export function ngettext(singular, plural, count) {
  if (catalog) return catalog.ngettext(singular, plural, count);
  return Number(count) === 1 ? singular : plural;
}

/** Return `text` with `%(name)s` replaced by `values.name`. The result is text, never markup. */
export function interpolate(text, values) {
  return text.replace(/%\((\w+)\)s/g, (found, name) =>
    Object.hasOwn(values, name) ? String(values[name]) : found);
}
