from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

agent = Agent("openai:gpt-5.4-mini", instructions="Advise what to wear. Look up the weather.", defer_model_check=True)

@agent.tool_plain(retries=1)
def weather(city: str) -> float:
    """Returns the temperature in a city."""
    if city not in {"Bern": 4.5}:
        raise ModelRetry("Use Bern.")
    return 4.5

calls = 0

def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    global calls
    calls += 1
    if calls <= 2:
        return ModelResponse(parts=[ToolCallPart("weather", {"city": ["Berne", "Bern"][calls - 1]})])
    return ModelResponse(parts=[TextPart("A coat.")])

def test_tool_is_tried_again() -> None:
    with agent.override(model=FunctionModel(model)):
        result = agent.run_sync("What do I wear in Bern?")
    assert result.output == "A coat." and calls == 3

test_tool_is_tried_again()
