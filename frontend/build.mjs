// Bundle each file of src/ into one module that browsers load. See docs/contributing/front-end.md.

import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";

const output = process.argv[2];
const OUTPUT = output ? pathToFileURL(`${output}/`) : new URL("../agents/static/agents/vendor/", import.meta.url);
const SOURCE = new URL("src/", import.meta.url);
const MODULES = new URL("node_modules/", import.meta.url);

await rm(OUTPUT, { recursive: true, force: true });
await mkdir(OUTPUT, { recursive: true });

const names = (await readdir(SOURCE)).filter((name) => name.endsWith(".js")).sort();
const licences = new Map();
for (const name of names) {
  const result = await build({
    absWorkingDir: new URL(".", import.meta.url).pathname,
    entryPoints: [`src/${name}`],
    bundle: true,
    format: "esm",
    legalComments: "none",
    metafile: true,
    minify: true,
    target: "es2022",
    write: false,
  });
  const packages = await packagesOf(result.metafile);
  for (const [id, licence] of packages) licences.set(id, licence);
  const header = `/* ${[...packages.keys()].sort().join(", ")}: see licences.txt. Built by frontend/build.mjs. */\n`;
  await writeFile(new URL(name, OUTPUT), header + result.outputFiles[0].text);
}
await cp(new URL("uplot/dist/uPlot.min.css", MODULES), new URL("plot.css", OUTPUT));
const texts = [...licences].sort().map(([id, text]) => `${id}\n${"=".repeat(id.length)}\n\n${text.trim()}\n`);
await writeFile(new URL("licences.txt", OUTPUT), texts.join("\n\n"));

/** Return the packages in a bundle: "name version" → text of the licence. */
async function packagesOf(metafile) {
  const found = new Map();
  for (const path of Object.keys(metafile.inputs)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
    if (!name) continue;
    const folder = new URL(`${name}/`, MODULES);
    const { version } = JSON.parse(await readFile(new URL("package.json", folder), "utf8"));
    const id = `${name} ${version}`;
    if (found.has(id)) continue;
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence file.`);
    found.set(id, await readFile(new URL(file, folder), "utf8"));
  }
  return found;
}
