// Leads chats as a page with the AI SDK's useChat does, and prints what came of each as JSON.
// Usage: node client.mjs VERSION URL TOKEN SCENARIO=AGENT…; all of them at once.
import * as ai from "ai";

const [version, url, token, ...wanted] = process.argv.slice(2);

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

function play(scenario, agent) {
  const api = `${url}/api/v1/agents/${agent}/chat`;
  const chatId = `${agent}-${scenario === "again" ? "error" : scenario}-${version}`; // the chats are all of one person
  const headers = { Authorization: `Token ${token}`, "AI-SDK-Version": version };

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

  const history = async () => (await rest("GET", `agents/${agent}/chat/${chatId}`)).body;

  // A connection that breaks once what was read holds `mark`.
  function cutAfter(mark) {
    return async (...request) => {
      const response = await fetch(...request);
      const reader = response.body.getReader();
      const text = new TextDecoder();
      let seen = "";
      const body = new ReadableStream({
        async pull(controller) {
          const { value } = await reader.read();
          if (value) {
            seen += text.decode(value, { stream: true });
            controller.enqueue(value);
          }
          if (seen.includes(mark) || !value) {
            await reader.cancel();
            controller.error(new TypeError("network error"));
          }
        },
      });
      return new Response(body, { status: response.status, headers: response.headers });
    };
  }

  async function until(condition) {
    const patience = Date.now() + 30_000;
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

    async cut() {
      const chat = new Chat({ id: chatId, fetch: cutAfter("text-delta") });
      await chat.sendMessage({ text: "Say something long" });
      const broken = chat.shown;
      const loaded = await history();
      const reloaded = new Chat({ id: chatId, messages: loaded.messages });
      await reloaded.resumeStream();
      return { broken, loaded, reloaded: reloaded.shown, history: await history() };
    },

    async cutInPlace() {
      let broken = false;
      const flaky = (...request) => {
        if (broken) return fetch(...request);
        broken = true;
        return cutAfter("text-delta")(...request);
      };
      const chat = new Chat({ id: chatId, fetch: flaky });
      await chat.sendMessage({ text: "Say something long" });
      const wasBroken = chat.shown;
      await chat.resumeStream();
      return { broken: wasBroken, chat: chat.shown, history: await history() };
    },

    approve: () => decide(true),
    deny: () => decide(false),

    async error() {
      const chat = new Chat({ id: chatId });
      await chat.sendMessage({ text: "Fail" });
      return { chat: chat.shown, history: await history() };
    },

    async again() {
      const { messages } = await history();
      const chat = new Chat({ id: chatId, messages });
      await chat.regenerate();
      return { chat: chat.shown, history: await history() };
    },

    async cancel() {
      const chat = new Chat({ id: chatId });
      const answered = chat.sendMessage({ text: "Take your time" });
      await until(() => chat.lastMessage?.parts?.some((part) => part.type === "text" && part.state));
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
