// Files of a message: by the button, by drag and by paste. The file input of the form always has the
// files of the list, so the form can also be sent without a script.

import { gettext, interpolate } from "./i18n.js";
import { element, inBytes, visible } from "./text.js";

export class Attachments {
  /** `form` has a file input, an empty `ul.attached`, and the limits as data attributes. */
  constructor(form) {
    this.form = form;
    this.input = form.querySelector("input[type=file]");
    this.list = form.querySelector(".attached");
    this.most = { files: Number(form.dataset.mostFiles), bytes: Number(form.dataset.mostBytes) };
    this.over = {
      files: interpolate(gettext("Over the limit. A conversation takes %(count)s files."), { count: this.most.files }),
      bytes: interpolate(gettext("Over the limit. A conversation takes %(size)s of files."), { size: inBytes(this.most.bytes) }),
    };
    // [file, its problem]
    this.files = [];
    form.classList.add("with-script");
    this.input.addEventListener("change", () => this.add(this.input.files));
    form.querySelector("textarea").addEventListener("paste", (event) => this.paste(event));
    for (const type of ["dragenter", "dragover"]) addEventListener(type, (event) => this.drag(event));
    addEventListener("dragleave", (event) => event.relatedTarget === null && this.mark(false));
    addEventListener("drop", (event) => this.drop(event));
  }

  /** The number of files that cannot be sent. */
  get refused() {
    return this.files.filter(([, problem]) => problem).length;
  }

  add(files) {
    for (const file of files) this.files.push([file, ""]);
    this.check();
  }

  remove(number) {
    this.files.splice(number, 1);
    this.check();
    this.input.focus();
  }

  clear() {
    this.files = [];
    this.check();
  }

  /** Show the problem of each file, in the order of the form. */
  tell(problems) {
    this.files.forEach((entry, number) => {
      entry[1] = problems[number] ?? "";
    });
    this.show();
  }

  /** Find files that exceed the limits of the server, and show the list. */
  check() {
    let bytes = 0;
    this.files.forEach((entry, number) => {
      const [file, problem] = entry;
      bytes += file.size;
      if (number >= this.most.files) entry[1] = this.over.files;
      else if (bytes > this.most.bytes) entry[1] = this.over.bytes;
      else if (Object.values(this.over).includes(problem)) entry[1] = "";
    });
    const transfer = new DataTransfer();
    for (const [file] of this.files) transfer.items.add(file);
    this.input.files = transfer.files;
    this.show();
  }

  show() {
    this.list.replaceChildren(...this.files.map(([file, problem], number) => {
      const name = visible(file.name);
      const remove = element("button", { type: "button", class: "link", "aria-label": interpolate(gettext("Remove %(name)s"), { name }) }, gettext("Remove"));
      remove.addEventListener("click", () => this.remove(number));
      const line = element("li", {}, element("span", { class: "what" }, name),
        element("span", { class: "quiet" }, inBytes(file.size)), remove);
      if (problem) line.append(element("span", { class: "bad" }, visible(problem)));
      return line;
    }));
    this.list.hidden = this.files.length === 0;
  }

  paste(event) {
    const { files, types } = event.clipboardData;
    // A copied part of a document has a picture of itself beside its text.
    if (files.length === 0 || types.includes("text/plain")) return;
    event.preventDefault();
    this.add(files);
  }

  drag(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.mark(true);
  }

  drop(event) {
    this.mark(false);
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    const items = [...event.dataTransfer.items].filter(({ kind }) => kind === "file");
    const files = items.map((item) => [item.getAsFile(), Boolean(item.webkitGetAsEntry?.()?.isDirectory)]);
    this.add(files.filter(([file, isDirectory]) => file && !isDirectory).map(([file]) => file));
    const directories = files.filter(([, isDirectory]) => isDirectory).map(([file]) => file?.name ?? "");
    if (directories.length === 0) return;
    const text = interpolate(
      gettext("Not attached: %(names)s. Attach the files of a directory, or a zip file of it."), { names: directories.join(", ") },
    );
    this.list.append(element("li", { class: "bad" }, visible(text)));
    this.list.hidden = false;
  }

  mark(isOver) {
    this.form.classList.toggle("dropping", isOver);
  }
}
