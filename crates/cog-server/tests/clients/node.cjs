// Node's clients: `eventsource` on a session's events, `ws` on a run. Prints what arrived as JSON.
const { EventSource } = require("eventsource");
const { WebSocket } = require("ws");

const KINDS = ["meta", "chunk", "progress", "final", "error"];
const [how, address, argument] = process.argv.slice(2);

function events() {
  const source = new EventSource(address);
  const seen = [];
  for (const kind of KINDS) {
    source.addEventListener(kind, (event) => {
      // A fault of the connection is an event without data: the client connects again.
      if (event.data === undefined) return;
      seen.push({ id: event.lastEventId, chunk: JSON.parse(event.data) });
      if (kind !== "final" && kind !== "error") return;
      source.close();
      console.log(JSON.stringify({ seen }));
    });
  }
}

function socket() {
  const [body, stop] = JSON.parse(argument);
  const socket = new WebSocket(address, ["cog"]);
  const seen = [];
  let pings = 0;
  socket.on("ping", () => pings++);
  socket.on("open", () => socket.send(JSON.stringify(body)));
  socket.on("message", (data) => {
    const chunk = JSON.parse(data);
    seen.push({ chunk });
    if (stop && seen.length === stop) socket.send(JSON.stringify({ type: "cancel" }));
    if (chunk.final || chunk.ok === false) socket.send(JSON.stringify({ type: "close" }));
  });
  socket.on("close", (code) => console.log(JSON.stringify({ seen, pings, code, protocol: socket.protocol })));
}

how === "events" ? events() : socket();
