from datetime import datetime
import instructor
from openai import OpenAI
from pydantic import BaseModel, model_validator

class Receipt(BaseModel):
    shop: str
    at: datetime
    prices: list[float]
    total: float
    @model_validator(mode="after")
    def adds_up(self) -> "Receipt":
        if sum(self.prices) != self.total:
            raise ValueError(f"the prices add up to {sum(self.prices)}")
        return self

client = instructor.from_openai(OpenAI())
receipt = client.chat.completions.create(
    model="gpt-5.4-mini",
    response_model=Receipt,
    max_retries=3,
    messages=[
        {"role": "system", "content": "Read the receipt."},
        {"role": "user", "content": "Corner, 2026-11-01 8:30, tea 1.50, cake 2.50, total 4.00"},
    ],
)
print(receipt.total)
