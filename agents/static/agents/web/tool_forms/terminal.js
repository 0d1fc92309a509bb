// A command and its output as in a terminal: the command, what it wrote, and how it ended.

import { addCopyButton, highlightIn } from "../code.js";
import { gettext, interpolate } from "../i18n.js";
import { LongText } from "../long_text.js";
import { element, plain, setText } from "../text.js";
import { jsonOf } from "../tool_forms.js";

const KNOWN = new Set(["success", "exit_code", "stdout", "stderr", "timed_out"]);

export const terminalForm = {
  isWhole: true,

  input(input, { code: [field, language], others }) {
    if (typeof input?.[field] !== "string") return null;
    const shown = element("pre", { class: "terminal", "data-prompt": language === "bash" ? "" : null, tabindex: "0" });
    const block = element("div", { class: "code-block" }, shown);
    new LongText(shown).set(input[field]);
    addCopyButton(block, shown);
    highlightIn(shown, language);
    const { [field]: _, ...rest } = input;
    return [block, ...others(rest)];
  },

  output(text, { others }) {
    const result = jsonOf(text);
    if (typeof result?.stdout !== "string" || !("exit_code" in result)) return null;
    const parts = [stream(result.stdout, "terminal")];
    if (result.stderr) parts.push(stream(plain(result.stderr), "terminal errors"));
    if (!result.stdout && !result.stderr) parts[0] = element("p", { class: "quiet" }, gettext("No output."));
    const isBad = result.exit_code !== 0 || Boolean(result.timed_out);
    const end = element("p", { class: isBad ? "event bad" : "event" });
    const ended = result.timed_out ? gettext("Stopped at its time limit, exit code %(code)s") : gettext("Exit code %(code)s");
    setText(end, interpolate(ended, { code: plain(result.exit_code) }));
    const rest = Object.fromEntries(Object.entries(result).filter(([name]) => !KNOWN.has(name)));
    return [...parts, end, ...others(rest)];
  },
};

function stream(text, className) {
  const shown = element("pre", { class: className, tabindex: "0" });
  const block = element("div", { class: "code-block" }, shown);
  new LongText(shown).set(text);
  addCopyButton(block, shown);
  return block;
}
