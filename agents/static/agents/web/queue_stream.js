// The socket of the user's queue, one per page. It sends the number of pending requests on each change.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30000;
const FINAL_CODES = new Set([4401, 4403]);
// Too many sockets or attempts, or a server at its limit.
const BUSY_CODES = new Set([4429, 4503]);

const listeners = new Set();
let attempt = 0;
let last = null;

/** `on` has changed({pending, version}) and optionally lost() and refused(code). */
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
    // Spread the reconnections after a server restart.
    setTimeout(connect, longest * (0.5 + Math.random() / 2));
    tell("lost");
  });
}
