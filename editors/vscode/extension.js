// The extension starts `cog lsp` and runs the commands of its code lenses. Everything else is the language server's.
"use strict";

const path = require("node:path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

/** The files of a module. */
const SELECTOR = [
  "**/module.yaml",
  "**/{MODULE,module,prompt}.md",
  "**/schema.json",
  "**/tests/*.{input,expected}.json",
].map((pattern) => ({ scheme: "file", pattern }));

/** @type {LanguageClient | undefined} */
let client;

/** @returns {string} the program of the settings */
function program() {
  return vscode.workspace.getConfiguration("cog").get("path") || "cog";
}

async function start() {
  const run = { command: program(), args: ["lsp"] };
  client = new LanguageClient("cog", "Cognitive Modules", { run, debug: run }, {
    documentSelector: SELECTOR,
    initializationOptions: { codeLens: true },
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/{module.yaml,*.md,*.json}") },
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const again = await vscode.window.showErrorMessage(
      `cog could not be started: ${error.message}. Set cog.path to the program.`,
      "Open Settings",
    );
    if (again) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "cog.path");
    }
  }
}

async function stop() {
  const stopped = client;
  client = undefined;
  await stopped?.stop();
}

/**
 * The arguments of the lens, or those of the open file for a command of the palette.
 * @param {string | undefined} directory
 * @param {string | undefined} name
 */
function target(directory, name) {
  if (directory) {
    return { directory, name };
  }
  const file = vscode.window.activeTextEditor?.document.uri.fsPath;
  if (!file) {
    return undefined;
  }
  const parent = path.dirname(file);
  const isCase = path.basename(parent) === "tests";
  return {
    directory: isCase ? path.dirname(parent) : parent,
    name: isCase ? path.basename(file).split(".")[0] : undefined,
  };
}

/**
 * Runs a command of `cog` in a terminal. The shell gets no text: a path may contain anything.
 * @param {string} title
 * @param {(name: string | undefined) => string[]} before the arguments before the directory
 * @param {(name: string | undefined) => string[]} [after] the arguments after it
 */
function inTerminal(title, before, after = () => []) {
  return (/** @type {string | undefined} */ directory, /** @type {string | undefined} */ name) => {
    const chosen = target(directory, name);
    if (!chosen) {
      return vscode.window.showInformationMessage("Open a file of a module first.");
    }
    if (!vscode.workspace.isTrusted) {
      return vscode.window.showWarningMessage("This workspace is not trusted: its modules are checked, but not run.");
    }
    const shellArgs = [...before(chosen.name), chosen.directory, ...after(chosen.name)];
    const terminal = vscode.window.createTerminal({
      name: `cog ${title}`,
      shellPath: program(),
      shellArgs,
      cwd: path.dirname(chosen.directory),
    });
    terminal.show();
  };
}

/** @param {{ subscriptions: { dispose(): unknown }[] }} context */
async function activate(context) {
  const commands = {
    "cog.run": async (/** @type {string} */ directory) => {
      const text = await vscode.window.showInputBox({ prompt: "The input, as text" });
      if (text !== undefined) {
        inTerminal("run", () => ["run"], () => ["--args", text])(directory, undefined);
      }
    },
    "cog.test": inTerminal("test", () => ["test"], (name) => (name ? ["--case", name] : [])),
    "cog.render": inTerminal("render", () => ["render"]),
    "cog.restart": async () => {
      await stop();
      await start();
    },
  };
  for (const [name, run] of Object.entries(commands)) {
    context.subscriptions.push(vscode.commands.registerCommand(name, run));
  }
  await start();
}

module.exports = { activate, deactivate: stop };
