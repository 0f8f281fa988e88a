// Anthropic's TypeScript SDK, and the AI SDK: `anthropic_sdk.cjs URL BROKEN TOKEN DATA`. At BROKEN, the model's connection breaks
// in the middle of each answer.
const assert = require("node:assert");
const { createAnthropic } = require("@ai-sdk/anthropic");
const { Anthropic, BadRequestError, NotFoundError } = require("@anthropic-ai/sdk");
const { generateText, streamText } = require("ai");

const [url, broken, apiKey, data] = process.argv.slice(2);
const DATA = JSON.parse(data);
const model = "module:m";
const question = { model, max_tokens: 64, messages: [{ role: "user", content: "why?" }] };

const sdk = (baseURL) => new Anthropic({ baseURL, apiKey, maxRetries: 0 });

async function messages(client) {
  const create = (more) => client.messages.create({ ...question, ...more });
  const message = await create({});
  assert.deepStrictEqual(JSON.parse(message.content[0].text), DATA);
  let [text, deltas] = ["", 0];
  for await (const event of await create({ stream: true })) {
    if (event.type === "content_block_delta") [text, deltas] = [text + event.delta.text, deltas + 1];
  }
  assert(text === message.content[0].text && deltas > 4, { text, deltas });
  const final = await client.messages.stream(question).finalMessage();
  assert.deepStrictEqual(final.usage, message.usage);
  assert.strictEqual((await create({ system: "be kind" })).cognitive._warnings[0].code, "W4030");
  const tools = [{ name: "f", input_schema: { type: "object" } }];
  await assert.rejects(create({ tools }), (error) => error instanceof BadRequestError && error.error.error.param === "tools");
  await assert.rejects(create({ model: "claude" }), (error) => error instanceof NotFoundError && error.error.error.code === "E4006");
  await assert.rejects(sdk(broken).messages.stream(question).finalMessage(), (error) => /E2010/.test(error.message));
  console.log("  Anthropic's TypeScript SDK");
}

async function aiSdk() {
  const anthropic = createAnthropic({ baseURL: `${url}/v1`, apiKey });
  const options = { model: anthropic(model), prompt: "why?", system: "be kind", maxRetries: 0 };
  const { text } = await generateText(options);
  assert.deepStrictEqual(JSON.parse(text), DATA);
  let streamed = "";
  for await (const delta of streamText(options).textStream) streamed += delta;
  assert.strictEqual(streamed, text);
  console.log("  the AI SDK with Anthropic's interface");
}

messages(sdk(url))
  .then(aiSdk)
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
