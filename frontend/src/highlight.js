// Highlights code as a tree, without HTML: https://github.com/wooorm/lowlight
import { createLowlight } from "lowlight";
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import r from "highlight.js/lib/languages/r";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import shell from "highlight.js/lib/languages/shell";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const lowlight = createLowlight({
  bash, css, diff, dockerfile, go, ini, java, javascript, json, makefile, markdown, python, r, ruby,
  rust, shell, sql, typescript, xml, yaml,
});

/** Return whether code in `language` can be highlighted. */
export function isKnown(language) {
  return lowlight.registered(language);
}

/** Return the tree (hast) of `code`: nodes with `type`, `value`, `properties.className`, `children`. */
export function highlight(language, code) {
  return lowlight.highlight(language, code);
}
