// The official TypeScript SDK as a client: `mcp.cjs URL`, or `mcp.cjs COG` for a program over stdio.
const assert = require("node:assert");
const { createHash } = require("node:crypto");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ResultSchema } = require("@modelcontextprotocol/sdk/types.js");

// The SDK does not know skills: their methods are plain requests.
async function readSkill(client, name) {
  const { skills } = await client.request({ method: "skills/list" }, ResultSchema);
  const listed = skills.find((skill) => skill.frontmatter.name === name);
  const { skill } = await client.request({ method: "skills/get", params: { uri: listed.uri } }, ResultSchema);
  assert.deepStrictEqual(skill, listed);
  assert(skill.resources.length > 3);
  for (const { uri, digest, size } of skill.resources) {
    const { contents } = await client.readResource({ uri });
    const bytes = Buffer.from(contents[0].text);
    assert.strictEqual(bytes.length, size);
    assert.strictEqual("sha256:" + createHash("sha256").update(bytes).digest("hex"), digest);
  }
  await assert.rejects(client.readResource({ uri: "skill://nothing/SKILL.md" }), { code: -32002 });
}

async function main(target) {
  const overHttp = target.startsWith("http");
  const args = ["mcp", "serve", "--provider", "offline"];
  const transport = overHttp
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args, stderr: "ignore" });
  const client = new Client({ name: "check", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const name = overHttp ? "m" : "code-reviewer";
  assert(tools.some((tool) => tool.name === name));
  const shown = [];
  const input = overHttp ? { query: "why?" } : { code: "eval(input())" };
  // The SDK validates the structured content with the output schema.
  const result = await client.callTool({ name, arguments: input }, undefined, {
    onprogress: ({ message }) => shown.push(message),
  });
  assert.strictEqual(result.structuredContent.ok, true);
  // Over stdio the SDK drops the progress that it reads at once with the result: its handler ends with the result.
  assert(!overHttp || shown.length > 1, `${shown}`);
  const failed = await client.callTool({ name, arguments: {} });
  assert.strictEqual(failed.isError, true);
  assert.strictEqual(failed.structuredContent.error.code, "E1002");
  await assert.rejects(client.callTool({ name: "nothing", arguments: {} }), { code: -32602 });
  await readSkill(client, name);
  await client.close();
}

main(process.argv[2]);
