// The extension with a stand-in for the editor, and the real `cog lsp` (COG names the program).
"use strict";

const assert = require("node:assert");
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const Module = require("node:module");
const os = require("node:os");
const path = require("node:path");
const test = require("node:test");

const program = process.env.COG ?? "cog";

/** What the extension did with the editor. */
const seen = { commands: new Map(), terminals: [], messages: [], started: [] };
const editor = { trusted: true, file: undefined, input: "hello; rm -rf /" };

const vscode = {
  workspace: {
    get isTrusted() {
      return editor.trusted;
    },
    getConfiguration: () => ({ get: () => program }),
    createFileSystemWatcher: (pattern) => ({ pattern }),
  },
  window: {
    get activeTextEditor() {
      return editor.file && { document: { uri: { fsPath: editor.file } } };
    },
    showInputBox: async () => editor.input,
    showInformationMessage: (text) => seen.messages.push(text),
    showWarningMessage: (text) => seen.messages.push(text),
    showErrorMessage: async (text) => void seen.messages.push(text),
    createTerminal: (options) => {
      seen.terminals.push(options);
      return { show() {} };
    },
  },
  commands: {
    registerCommand: (name, run) => {
      seen.commands.set(name, run);
      return { dispose() {} };
    },
    executeCommand: async () => {},
  },
};

class LanguageClient {
  constructor(id, name, server, options) {
    seen.started.push({ server, options });
    this.command = server.run.command;
  }
  async start() {
    if (!fs.existsSync(this.command)) {
      throw new Error("spawn ENOENT");
    }
  }
  async stop() {}
}

const load = Module._load;
Module._load = (name, ...rest) => {
  if (name === "vscode") {
    return vscode;
  }
  return name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest);
};
const extension = require("../extension.js");

test.before(() => extension.activate({ subscriptions: [] }));

/** Speaks to a server until it has said what `isDone` looks for. The messages after the first one wait for its answer. */
function talk({ command, args }, [initialize, ...messages], isDone) {
  return new Promise((resolve, reject) => {
    const server = spawn(command, args);
    let output = Buffer.alloc(0);
    const received = [];
    server.on("error", reject);
    const send = (message) => {
      const text = JSON.stringify({ jsonrpc: "2.0", ...message });
      server.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
    };
    server.stdout.on("data", (bytes) => {
      output = Buffer.concat([output, bytes]);
      for (;;) {
        const end = output.indexOf("\r\n\r\n");
        if (end < 0) {
          return;
        }
        const length = Number(/Content-Length: (\d+)/.exec(output.subarray(0, end).toString())[1]);
        if (output.length < end + 4 + length) {
          return;
        }
        received.push(JSON.parse(output.subarray(end + 4, end + 4 + length).toString()));
        output = output.subarray(end + 4 + length);
        if (received.length === 1) {
          messages.forEach(send);
        }
        if (isDone(received)) {
          server.stdin.end();
          resolve(received);
        }
      }
    });
    send(initialize);
  });
}

test("the server that it starts checks a module", { timeout: 60_000 }, async () => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "cog-vscode-"));
  const manifest = path.join(root, "sorter", "module.yaml");
  fs.mkdirSync(path.dirname(manifest));
  const { server, options } = seen.started[0];
  const uri = `file://${manifest}`;
  const document = { uri, languageId: "yaml", version: 1, text: "name: sorter\nversion: 1.0.0\nteir: exec\n" };
  const messages = [
    { id: 1, method: "initialize", params: { capabilities: {}, initializationOptions: options.initializationOptions } },
    { method: "initialized", params: {} },
    { method: "textDocument/didOpen", params: { textDocument: document } },
    { id: 2, method: "textDocument/codeLens", params: { textDocument: { uri } } },
  ];
  const found = (received) => received.find((message) => message.params?.uri === uri);
  const lenses = (received) => received.find((message) => message.id === 2);
  const received = await talk(server.run, messages, (all) => found(all) && lenses(all));
  const misspelt = found(received).params.diagnostics.find((diagnostic) => diagnostic.code === "key-unknown");
  assert.deepStrictEqual(misspelt.data, { replacement: "tier" });
  // Every command above the file is one that the extension has.
  const commands = lenses(received).result.map((lens) => lens.command.command);
  assert.deepStrictEqual(commands, ["cog.run", "cog.test", "cog.render"]);
  commands.forEach((command) => assert.ok(seen.commands.has(command)));
  assert.strictEqual(lenses(received).result[0].command.arguments[0], path.dirname(manifest));
  fs.rmSync(root, { recursive: true });
});

test("commands of the palette take the module of the open file", () => {
  editor.file = "/work space/sorter/tests/a b.input.json";
  seen.commands.get("cog.test")();
  const { shellPath, shellArgs } = seen.terminals.pop();
  assert.strictEqual(shellPath, program);
  assert.deepStrictEqual(shellArgs, ["test", "/work space/sorter", "--case", "a b"]);
});

test("the input of a run is an argument and no text of a shell", async () => {
  await seen.commands.get("cog.run")("/m/sorter");
  assert.deepStrictEqual(seen.terminals.pop().shellArgs, ["run", "/m/sorter", "--args", "hello; rm -rf /"]);
});

test("nothing runs in a workspace that is not trusted", () => {
  editor.trusted = false;
  seen.commands.get("cog.render")("/m/sorter");
  editor.trusted = true;
  assert.strictEqual(seen.terminals.length, 0);
  assert.match(seen.messages.pop(), /not trusted/);
});

test("the server starts again", async () => {
  const before = seen.started.length;
  await seen.commands.get("cog.restart")();
  assert.strictEqual(seen.started.length, before + 1);
});
