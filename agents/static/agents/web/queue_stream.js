// The socket of the person's queue, one for each page: how many requests wait, told on each change.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30000;
const FINAL_CODES = new Set([4401, 4403]);
// Too many sockets or attempts, and a server without room.
const BUSY_CODES = new Set([4429, 4503]);

const listeners = new Set();
let attempt = 0;
let last = null;

/** `on` has changed({pending, version}) and, if it likes, lost() and refused(code). */
export function followQueue(on) {
  listeners.add(on);
  if (listeners.size === 1) connect();
  else if (last) on.changed(last);
}

function tell(what, argument) {
  for (const on of listeners) on[what]?.(argument);
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}${document.body.dataset.sockets}approvals/`);
  socket.addEventListener("message", (message) => {
    const frame = JSON.parse(message.data);
    if (frame.type !== "queue") return;
    attempt = 0;
    last = frame;
    tell("changed", last);
  });
  socket.addEventListener("close", ({ code }) => {
    if (FINAL_CODES.has(code)) {
      tell("refused", code);
      return;
    }
    const longest = BUSY_CODES.has(code) ? LONGEST_PAUSE : Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** attempt);
    attempt += 1;
    // Not all pages at once when a server comes back.
    setTimeout(connect, longest * (0.5 + Math.random() / 2));
    tell("lost");
  });
}
