import json
from collections.abc import AsyncIterator
import instructor
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

class Story(BaseModel):
    title: str
    text: str

client = instructor.from_openai(AsyncOpenAI())
app = FastAPI()

async def events(topic: str, request: Request) -> AsyncIterator[str]:
    stream = client.chat.completions.create_partial(
        model="gpt-5.4-mini",
        response_model=Story,
        messages=[
            {"role": "system", "content": "Tell a story about the topic."},
            {"role": "user", "content": topic},
        ],
    )
    async for part in stream:
        if await request.is_disconnected():
            break
        yield f"data: {json.dumps(part.model_dump())}\n\n"

@app.get("/story")
async def story(topic: str, request: Request) -> StreamingResponse:
    return StreamingResponse(events(topic, request), media_type="text/event-stream")
