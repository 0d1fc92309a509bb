// Leads chats as a page with the AI SDK's useChat does, and prints what came of each as JSON.
// Usage: node client.mjs VERSION URL TOKEN SCRIPTS SCENARIO=AGENT…; all of them at once. A scenario
// may end with @agent, to name the version as the SDK's own functions do, or @nothing, to name none.
// SCRIPTS is the directory of the agents' scripts.
import { readFile, writeFile } from "node:fs/promises";
import * as ai from "ai";
import { getRuntimeEnvironmentUserAgent, withUserAgentSuffix } from "@ai-sdk/provider-utils";

const [version, url, token, scripts, ...wanted] = process.argv.slice(2);

// What @ai-sdk/react keeps in React's state.
class State {
  status = "ready";
  error = undefined;
  constructor(messages) {
    this.messages = messages;
  }
  pushMessage = (message) => {
    this.messages = [...this.messages, this.snapshot(message)];
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (at, message) => {
    this.messages = this.messages.map((old, i) => (i === at ? this.snapshot(message) : old));
  };
  snapshot = (value) => structuredClone(value);
}

const { version: release } = JSON.parse(await readFile("node_modules/ai/package.json", "utf8"));
const naming = {
  agent: withUserAgentSuffix({}, `ai-sdk/${release}`, getRuntimeEnvironmentUserAgent()),
  nothing: {},
};

function play(wanted, agent) {
  const [scenario, how] = wanted.split("@");
  const api = `${url}/api/v1/agents/${agent}/chat`;
  const chatId = `${agent}-${wanted}-${version}`; // the chats are all of one person
  const headers = {
    Authorization: `Bearer ${token}`,
    ...(how ? naming[how] : { "AI-SDK-Version": version }),
  };

  class Chat extends ai.AbstractChat {
    constructor({ messages = [], fetch, ...options } = {}) {
      const state = new State(messages);
      const transport = new ai.DefaultChatTransport({ api, headers, fetch });
      super({
        state,
        transport,
        sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses,
        onError: () => {},
        ...options,
      });
    }
    get shown() {
      const { status, error, messages } = this;
      return { status, error: error?.message, messages };
    }
  }

  async function rest(method, path, body) {
    const response = await fetch(`${url}/api/v1/${path}`, {
      method,
      headers: { ...headers, "Content-Type": "application/json" },
      body: body && JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }

  const history = async (id = chatId) => (await rest("GET", `agents/${agent}/chat/${id}`)).body;

  // A connection that ends after the first chunk that holds `mark`, and breaks once `arrived()`.
  function cutAfter(mark, arrived) {
    return async (...request) => {
      const response = await fetch(...request);
      const reader = response.body.getReader();
      const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
      let seen = "";
      let cut = false;
      const body = new ReadableStream({
        async pull(controller) {
          if (cut) {
            // An error would discard what the chat has not read yet.
            await until(arrived);
            controller.error(new TypeError("network error"));
            return;
          }
          const { value, done } = await reader.read();
          if (done) throw new Error(`the answer ended without ${mark}`);
          const before = seen.length;
          seen += decoder.decode(value, { stream: true });
          const at = seen.indexOf(mark);
          const end = at < 0 ? -1 : seen.indexOf("\n\n", at);
          controller.enqueue(encoder.encode(seen.slice(before, end < 0 ? undefined : end + 2)));
          if (end >= 0) {
            cut = true;
            await reader.cancel();
          }
        },
      });
      return new Response(body, { status: response.status, headers: response.headers });
    };
  }

  // A chat whose answer was cut off while its text arrived. Later requests are not cut.
  async function cutChat(id) {
    let chat;
    const isStreaming = () =>
      chat.lastMessage.parts?.some((part) => part.type === "text" && part.state === "streaming");
    const cutFetch = cutAfter("text-delta", isStreaming);
    let requests = 0;
    const flaky = (...request) => (requests++ ? fetch(...request) : cutFetch(...request));
    chat = new Chat({ id, fetch: flaky });
    await chat.sendMessage({ text: "Say something long" });
    return chat;
  }

  const hasEnded = (found) => !["pending", "queued", "running", "waiting"].includes(found.latest_run.status);

  // Plays `scene` in new chats until the answer was still under way when it was resumed.
  async function untilInTime(scene) {
    for (let take = 0; ; take++) {
      const found = await scene(`${chatId}-${take}`);
      if (found) return found;
    }
  }

  async function until(condition) {
    const patience = Date.now() + 300_000;
    while (!(await condition())) {
      if (Date.now() > patience) throw new Error(`waited too long: ${condition}`);
      await new Promise((go) => setTimeout(go, 20));
    }
  }

  const settled = (chat) => until(() => ["ready", "error"].includes(chat.status));
  const toolPart = (chat) => chat.lastMessage?.parts.find((part) => part.type.startsWith("tool-"));
  const asked = (chat) =>
    chat.lastMessage?.parts.find((part) => part.type === "data-tool-approval")?.data;

  const scenarios = {
    async talk() {
      const chat = new Chat({ id: chatId });
      await chat.sendMessage({ text: "Say something" });
      await chat.sendMessage({ text: "And again" });
      const idle = new Chat({ id: chatId, messages: chat.messages });
      await idle.resumeStream();
      return { chat: chat.shown, history: await history(), idle: idle.shown };
    },

    cut: () =>
      untilInTime(async (id) => {
        const broken = (await cutChat(id)).shown;
        const loaded = await history(id);
        const reloaded = new Chat({ id, messages: loaded.messages });
        await reloaded.resumeStream();
        if (hasEnded(loaded) || reloaded.lastMessage.role === "user") return null;
        return { broken, loaded, reloaded: reloaded.shown, history: await history(id) };
      }),

    cutInPlace: () =>
      untilInTime(async (id) => {
        const chat = await cutChat(id);
        const broken = structuredClone(chat.shown);
        await chat.resumeStream();
        const gotNothing = JSON.stringify(chat.messages) === JSON.stringify(broken.messages);
        if (chat.status === "error" || gotNothing) return null; // the answer had ended before
        return { broken, chat: chat.shown, history: await history(id) };
      }),

    // The answer ends after the page has loaded the chat and before it asks for the stream.
    endsBetween: () =>
      untilInTime(async (id) => {
        await cutChat(id);
        const loaded = await history(id);
        if (hasEnded(loaded)) return null;
        await until(async () => hasEnded(await history(id)));
        const reloaded = new Chat({ id, messages: loaded.messages });
        await reloaded.resumeStream();
        const resumed = structuredClone(reloaded.shown);
        if (!hasEnded(loaded) && reloaded.lastMessage.role === "user") {
          reloaded.messages = (await history(id)).messages; // as docs/guides/streams.md says
        }
        return { loaded, resumed, reloaded: reloaded.shown, history: await history(id) };
      }),

    approve: () => decide(true),
    deny: () => decide(false),

    async error() {
      const chat = new Chat({ id: chatId });
      await chat.sendMessage({ text: "Fail" });
      const failed = { chat: chat.shown, history: await history() };
      await writeFile(`${scripts}/${agent}.json`, JSON.stringify({ turns: [{ text: "All done." }] }));
      const again = new Chat({ id: chatId, messages: failed.history.messages });
      await again.regenerate();
      return { failed, again: { chat: again.shown, history: await history() } };
    },

    async cancel() {
      const chat = new Chat({ id: chatId });
      const answered = chat.sendMessage({ text: "Take your time" });
      await until(() => chat.lastMessage?.parts?.some((part) => part.type === "text" && part.state && part.text));
      const cancelled = await rest("POST", `agents/${agent}/chat/${chatId}/cancel`, { reason: "enough" });
      await answered;
      return { cancelled, chat: chat.shown, history: await history() };
    },

    async refused() {
      const chat = new Chat({ id: chatId });
      await chat.sendMessage({ files: [{ type: "file", mediaType: "image/png", url: `${url}/secret.png` }] });
      return { chat: chat.shown };
    },
  };

  async function decide(approved) {
    const chat = new Chat({ id: chatId });
    const answered = chat.sendMessage({ text: "Plan it" });
    if (version === "5") {
      await until(() => asked(chat));
      const waiting = structuredClone(chat.shown);
      const { approvalId, digest } = asked(chat);
      const decision = approved ? "approve" : "reject";
      const answer = { decision, digest, reason: approved ? "" : "not today" };
      await rest("POST", `approvals/${approvalId}/decide`, answer);
      await answered;
      return { waiting, chat: chat.shown, history: await history() };
    }
    await answered;
    const waiting = structuredClone(chat.shown);
    const loaded = await history();
    const reloaded = new Chat({ id: chatId, messages: loaded.messages });
    await reloaded.resumeStream();
    const again = structuredClone(reloaded.shown);
    // As a person does who has reloaded the page.
    const reason = approved ? undefined : "not today";
    await reloaded.addToolApprovalResponse({ id: toolPart(reloaded).approval.id, approved, reason });
    await until(() => toolPart(reloaded).state.startsWith("output-"));
    await settled(reloaded);
    return { waiting, again, chat: reloaded.shown, history: await history() };
  }

  return scenarios[scenario]();
}

const played = wanted.map(async (each) => {
  const [scenario, agent] = each.split("=");
  return [scenario, await play(scenario, agent)];
});
console.log(JSON.stringify(Object.fromEntries(await Promise.all(played))));
