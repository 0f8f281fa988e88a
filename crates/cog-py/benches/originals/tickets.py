import asyncio
from typing import Literal
import instructor
import pandas
from openai import AsyncOpenAI
from pydantic import BaseModel

class Decision(BaseModel):
    kind: Literal["billing", "bug"]
    reply: str

client = instructor.from_openai(AsyncOpenAI())
limit = asyncio.Semaphore(32)

async def triage(ticket: str) -> dict[str, str | None]:
    async with limit:
        try:
            made = await client.chat.completions.create(
                model="gpt-5.4-mini",
                response_model=Decision,
                messages=[
                    {"role": "system", "content": "Classify the ticket, and write a reply."},
                    {"role": "user", "content": ticket},
                ],
            )
        except Exception as error:
            return {"kind": None, "error": str(error)}
        return {"kind": made.kind, "error": None}

async def main() -> None:
    tickets = pandas.DataFrame({"ticket": ["I was charged twice.", float("nan"), "It crashes."]})
    rows = await asyncio.gather(*map(triage, tickets["ticket"]))
    print(tickets.join(pandas.DataFrame(rows))[["kind", "error"]])

asyncio.run(main())
