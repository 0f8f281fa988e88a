"""Uses the functions of modules with the types of `cog types`. It is checked, not run."""

from dataclasses import dataclass
from typing import Literal

from cognitive import CognitiveRuntime, Result
from cognitive.modules import code_analyzer, code_reviewer, list_
from modules import CodeReviewerData, CodeReviewerInput, code_reviewer as review, code_reviewer_async
from typing_extensions import assert_type


def titles(code: str) -> list[str]:
    given: CodeReviewerInput = {"code": code, "focus": ["security"]}
    data = review(given, runtime=CognitiveRuntime(provider="offline"), timeout=3)
    assert_type(data, CodeReviewerData)
    assert_type(data["verdict"], Literal["approve", "change", "reject"])
    return [issue["title"] for issue in data["issues"] if issue.get("line", 0) > 1]


async def verdict(code: str) -> str:
    return (await code_reviewer_async({"code": code}))["verdict"]


def functions(code: str) -> str:
    by_keyword = code_reviewer(code=code).raise_for_error().data
    assert_type(by_keyword["verdict"], Literal["approve", "change", "reject"])
    by_dict = code_reviewer({"code": code})
    if by_dict.data is not None:
        return by_dict.data["rationale"]
    for chunk in code_analyzer.with_options(provider="offline").stream(code=code):
        print(chunk)
    insights = list_({"str": code, "list": [code]}).raise_for_error().data.get("extensions", {}).get("insights", [])
    text_is_input: Result = code_reviewer(code)
    print([insight["text"] for insight in insights], text_is_input.exceptions, code_reviewer.module.name)
    code_reviewer({"cod": code})  # type: ignore[call-overload]  # pyright: ignore
    code_reviewer(cod=code)  # type: ignore[call-overload]  # pyright: ignore
    return ""


@dataclass
class Code:
    code: str


def untyped(result: Result) -> object:
    code_reviewer(Code("eval(input())"))
    return result.data["verdict"]
