// OpenAI's TypeScript SDK and the AI SDK: `openai.cjs URL BROKEN TOKEN PNG DATA`. At BROKEN, the model's connection breaks in the
// middle of each answer.
const assert = require("node:assert");
const { createOpenAI } = require("@ai-sdk/openai");
const { APICallError, Output, generateText, streamText } = require("ai");
const { BadRequestError, NotFoundError, OpenAI } = require("openai");
const { zodResponseFormat, zodTextFormat } = require("openai/helpers/zod");
const { z } = require("zod");

const [url, broken, apiKey, png, data] = process.argv.slice(2);
const DATA = JSON.parse(data);
const IMAGE = `data:image/png;base64,${png}`;
const Answer = z.object({ result: z.string(), rationale: z.string() });
const model = "module:m";
const messages = [{ role: "user", content: "why?" }];

const sdk = (address) => new OpenAI({ baseURL: `${address}/v1`, apiKey, maxRetries: 0 });
const isCode = (code) => (error) => error.code === code;

async function chat(client) {
  const create = (more) => client.chat.completions.create({ model, messages, ...more });
  const completion = await create({});
  assert.deepStrictEqual(JSON.parse(completion.choices[0].message.content), DATA);
  assert(completion.usage.total_tokens > 0);
  let [text, deltas, usage] = ["", 0, null];
  for await (const chunk of await create({ stream: true, stream_options: { include_usage: true } })) {
    const delta = chunk.choices[0]?.delta.content;
    if (delta) [text, deltas] = [text + delta, deltas + 1];
    usage = chunk.usage ?? usage;
  }
  assert.strictEqual(text, completion.choices[0].message.content);
  assert(deltas > 4 && usage.total_tokens === completion.usage.total_tokens, { deltas, usage });
  const format = { response_format: zodResponseFormat(Answer, "answer") };
  const parsed = await client.chat.completions.parse({ model, messages, ...format });
  assert.deepStrictEqual(parsed.choices[0].message.parsed, DATA);
  const final = await client.chat.completions.stream({ model, messages, ...format }).finalChatCompletion();
  assert.deepStrictEqual(final.choices[0].message.parsed, DATA);
  const content = [{ type: "text", text: "what is it?" }, { type: "image_url", image_url: { url: IMAGE } }];
  const seen = await create({ messages: [{ role: "user", content }] });
  assert(seen.cognitive.meta.media_processed);
  await assert.rejects(create({ n: 2 }), (error) => error instanceof BadRequestError && error.code === "E1004" && error.param === "n");
  await assert.rejects(create({ model: "gpt-4" }), (error) => error instanceof NotFoundError && error.code === "E4006");
}

async function responses(client) {
  const create = (more) => client.responses.create({ model, input: "why?", ...more });
  const response = await create({});
  assert.deepStrictEqual(JSON.parse(response.output_text), DATA);
  let [text, deltas, completed] = ["", 0, null];
  for await (const event of await create({ stream: true })) {
    if (event.type === "response.output_text.delta") [text, deltas] = [text + event.delta, deltas + 1];
    if (event.type === "response.completed") completed = event.response;
  }
  assert.strictEqual(text, response.output_text);
  assert(deltas > 4 && completed.usage.total_tokens === response.usage.total_tokens);
  const format = { text: { format: zodTextFormat(Answer, "answer") } };
  const parsed = await client.responses.parse({ model, input: "why?", ...format });
  assert.deepStrictEqual(parsed.output_parsed, DATA);
  const final = await client.responses.stream({ model, input: "why?", ...format }).finalResponse();
  assert.deepStrictEqual(final.output_parsed, DATA);
  const content = [{ type: "input_text", text: "what is it?" }, { type: "input_image", image_url: IMAGE }];
  const seen = await create({ input: [{ role: "user", content }] });
  assert(seen.cognitive.meta.media_processed);
  const told = await create({ instructions: "be kind" });
  assert.strictEqual(told.cognitive._warnings[0].code, "W4030");
  await assert.rejects(create({ background: true }), (error) => error instanceof BadRequestError && error.param === "background");
}

async function brokenStreams(client) {
  const read = async (stream) => {
    for await (const _ of await stream);
  };
  await assert.rejects(read(client.chat.completions.create({ model, messages, stream: true })), isCode("E2010"));
  await assert.rejects(read(client.responses.create({ model, input: "why?", stream: true })), isCode("E2010"));
}

// The options of the AI SDK. Errors of a stream are events; by default it prints them.
const options = (model, more) => ({ model, prompt: "why?", maxRetries: 0, onError: () => {}, ...more });

async function aiSdk(model, brokenModel, otherModel) {
  const { text, usage } = await generateText(options(model));
  assert.deepStrictEqual(JSON.parse(text), DATA);
  assert(usage.totalTokens > 0);
  let [streamed, deltas] = ["", 0];
  for await (const delta of streamText(options(model)).textStream) [streamed, deltas] = [streamed + delta, deltas + 1];
  assert(streamed === text && deltas > 4, { streamed, deltas });
  const output = Output.object({ schema: Answer });
  assert.deepStrictEqual((await generateText(options(model, { output }))).output, DATA);
  const partial = streamText(options(model, { output }));
  const results = [];
  for await (const object of partial.partialOutputStream) results.push(object.result ?? "");
  assert.deepStrictEqual(await partial.output, DATA);
  // Each partial result is a beginning of the complete one: nothing that was sent is contradicted.
  assert(results.length > 4 && results.every((result) => DATA.result.startsWith(result)), results);
  const content = [{ type: "text", text: "what is it?" }, { type: "file", mediaType: "image/png", data: png }];
  const seen = await generateText(options(model, { prompt: [{ role: "user", content }] }));
  assert.deepStrictEqual(JSON.parse(seen.text), DATA);
  await assert.rejects(generateText(options(otherModel)), (error) => error instanceof APICallError && error.statusCode === 404);
  assert.deepStrictEqual(JSON.parse((await generateText(options(model, { system: "be kind" }))).text), DATA);
  const errors = [];
  for await (const part of streamText(options(brokenModel)).fullStream) if (part.type === "error") errors.push(part.error);
  assert(errors.length === 1 && JSON.stringify(errors[0], ["message", "code", "error", "data"]).includes("E2010"), errors);
}

async function main() {
  const client = sdk(url);
  const models = await client.models.list();
  assert(models.data.some(({ id }) => id === model));
  await chat(client);
  await responses(client);
  await brokenStreams(sdk(broken));
  console.log("  OpenAI's TypeScript SDK");
  const provider = (address) => createOpenAI({ baseURL: `${address}/v1`, apiKey });
  for (const api of ["chat", "responses"]) {
    await aiSdk(provider(url)[api](model), provider(broken)[api](model), provider(url)[api]("gpt-4"));
  }
  console.log("  the AI SDK");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
