// Compares texts: https://github.com/kpdecker/jsdiff
export { diffLines, diffWords, structuredPatch } from "diff";
