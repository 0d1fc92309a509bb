// Shows why a page of a PDF has no picture, and requests it again if the server was busy.

import { gettext, interpolate } from "../agents/web/i18n.js";
import { element } from "../agents/web/text.js";

const MOST_TRIES = 5;

for (const image of document.querySelectorAll(".pdf-page img")) {
  let tries = 0;
  const explain = async () => {
    tries += 1;
    let response;
    try {
      response = await fetch(image.src);
    } catch (error) {
      console.warn("a page could not be loaded", error);
      return;
    }
    const seconds = Number(response.headers.get("retry-after"));
    if ((response.ok || seconds) && tries < MOST_TRIES) {
      setTimeout(() => { image.src = image.src; }, seconds * 1000);
      return;
    }
    const isText = response.headers.get("content-type")?.startsWith("text/plain");
    const reason = isText ? await response.text()
      : interpolate(gettext("the server answered with %(status)s"), { status: response.status });
    const text = gettext("%(page)s cannot be shown: %(reason)s.");
    image.replaceWith(element("p", { class: "note" }, interpolate(text, { page: image.alt, reason })));
  };
  image.addEventListener("error", explain);
  // It may have failed before this script was loaded.
  if (image.complete && !image.naturalWidth) explain();
}
