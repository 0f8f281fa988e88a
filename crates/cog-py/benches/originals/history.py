from openai import OpenAI

client = OpenAI()
history = [{"role": "user", "content": "2 + 2"}, {"role": "assistant", "content": "four"}]
reply = client.chat.completions.create(
    model="gpt-5.4-mini",
    messages=[{"role": "system", "content": "Answer in one word."}, *history, {"role": "user", "content": "3 + 3"}],
    temperature=0.2,
    max_completion_tokens=200,
    seed=7,
)
print(reply.choices[0].message.content)
