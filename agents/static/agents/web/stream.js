// The socket of a run. It reconnects after the last received event, so that no event is repeated.
// With `tree`, events of subagents come too. Their `run_id` shows the run.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15000;
const FINAL_CODES = new Set([4400, 4401, 4403, 4404]);
// Too many sockets or attempts, or a server at its limit.
const BUSY_CODES = new Set([4429, 4503]);

export class RunStream {
  /**
   * `on` has event(event), answer(frame), open(), lost(milliseconds) and refused(code). With
   * `tree: "brief"`, the server also sends the status of subagents.
   */
  constructor(runId, on, { tree = "" } = {}) {
    this.runId = runId;
    this.tree = tree;
    this.on = on;
    this.seen = new Map([[runId, 0]]);
    this.isClosed = false;
    this.attempt = 0;
    this.timer = null;
    window.addEventListener("online", () => this.retryNow());
    this.connect();
  }

  connect() {
    this.timer = null;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const query = `after=${this.seen.get(this.runId)}&tree=${this.tree}`;
    const socket = new WebSocket(`${scheme}//${location.host}${document.body.dataset.sockets}runs/${this.runId}/?${query}`);
    this.socket = socket;
    socket.addEventListener("open", () => this.on.open());
    socket.addEventListener("message", (message) => this.receive(parse(message.data)));
    socket.addEventListener("close", (closed) => socket === this.socket && this.closed(closed.code));
  }

  receive(frame) {
    this.attempt = 0;
    if (frame.seq === undefined || frame.run_id === undefined) {
      this.on.answer(frame);
    } else if (frame.seq > (this.seen.get(frame.run_id) ?? 0)) {
      this.seen.set(frame.run_id, frame.seq);
      this.on.event(frame);
    }
  }

  /** Close the socket. `reopen` continues after the last received event. */
  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.timer = null;
    this.socket.close();
  }

  reopen() {
    this.isClosed = false;
    this.connect();
  }

  closed(code) {
    if (this.isClosed) return;
    if (FINAL_CODES.has(code)) {
      this.on.refused(code);
      return;
    }
    const longest = BUSY_CODES.has(code) ? LONGEST_PAUSE : Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.attempt);
    // Spread the reconnections after a server restart.
    const pause = longest * (0.5 + Math.random() / 2);
    this.attempt += 1;
    this.timer = setTimeout(() => this.connect(), pause);
    this.on.lost(pause);
  }

  retryNow() {
    if (this.timer !== null) {
      clearTimeout(this.timer);
      this.connect();
    }
  }

  /** Send `text`. Returns whether the socket was open. */
  send(text) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(text);
    return true;
  }
}

const LONG_NUMBER = /\d{16}/;

/** Parse JSON. Integers that a browser would round become strings of their digits. */
export function parse(text) {
  return LONG_NUMBER.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(name, value, context) {
  const isRounded = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isRounded && context?.source ? context.source : value;
}
