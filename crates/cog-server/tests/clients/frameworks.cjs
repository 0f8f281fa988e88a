// JavaScript frameworks with their default options: `frameworks.cjs URL TOKEN DATA`.
const assert = require("node:assert");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { ChatOpenAI } = require("@langchain/openai");
const { Agent, Runner, OpenAIProvider, setTracingDisabled } = require("@openai/agents");
const { generateText, streamText } = require("ai");

const [url, apiKey, data] = process.argv.slice(2);
const DATA = JSON.parse(data);
const model = "module:m";
const baseURL = `${url}/v1`;

async function same(text, stream) {
  assert.deepStrictEqual(JSON.parse(text), DATA);
  let [streamed, parts] = ["", 0];
  for await (const part of stream) if (part) [streamed, parts] = [streamed + part, parts + 1];
  assert(streamed === text && parts > 4, { streamed, parts });
}

async function* mapped(stream, text) {
  for await (const item of stream) yield text(item);
}

async function openaiAgents() {
  setTracingDisabled(true);
  for (const useResponses of [true, false]) {
    const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey, baseURL, useResponses }) });
    for (const instructions of [undefined, "Be kind."]) {
      const agent = new Agent({ name: "a", model, instructions });
      const { finalOutput } = await runner.run(agent, "why?");
      await same(finalOutput, (await runner.run(agent, "why?", { stream: true })).toTextStream());
    }
  }
}

async function langchain() {
  const chat = new ChatOpenAI({ model, apiKey, configuration: { baseURL } });
  const messages = [["system", "Be kind."], ["user", "why?"]];
  await same((await chat.invoke(messages)).content, mapped(await chat.stream(messages), (chunk) => chunk.content));
}

async function aiSdk() {
  const provider = createOpenAICompatible({ name: "cog", baseURL, apiKey });
  const options = { model: provider(model), system: "Be kind.", prompt: "why?", maxRetries: 0 };
  await same((await generateText(options)).text, streamText(options).textStream);
}

async function main() {
  for (const [name, run] of Object.entries({ openaiAgents, langchain, aiSdk })) {
    await run();
    console.log(`  ${name}`);
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
