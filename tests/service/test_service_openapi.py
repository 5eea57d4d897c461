"""The documentation of the service is true: no answer that is not in it, whatever is asked, and no failure."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from local_service import CAFE, Shop, shop

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def cafe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("service")) as opened:
        opened.send("cafe", CAFE * 2)
        opened.settle("cafe", served="sparse")
        opened.learn()
        monkeypatch = pytest.MonkeyPatch()
        monkeypatch.setattr(type(opened.service.supervisor), "is_alive", True)
        yield opened
        monkeypatch.undo()


def operations(cafe: Shop) -> list[Any]:
    """All that can be asked, but for events, which do not end."""
    found = schemathesis.openapi.from_dict(cafe.http.request("GET", "/openapi.json").json())
    results: Any = found.exclude(path_regex="/events$").get_all_operations()
    return [one.ok() for one in results]


@pytest.mark.parametrize("mode", [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE])
def test_every_answer_is_documented(cafe: Shop, mode: schemathesis.GenerationMode) -> None:
    asked: Counter[str] = Counter()
    for operation in operations(cafe):
        if mode is schemathesis.GenerationMode.NEGATIVE and "{market}" not in operation.path:
            continue  # what takes nothing cannot be asked wrongly

        @settings(
            max_examples=10, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            asked[case.operation.label] += 1
            if case.path_parameters and asked[case.operation.label] % 2:
                case.path_parameters["market"] = "cafe"  # half of the questions are about a market that there is
            sent = case.as_transport_kwargs(base_url="http://localhost")
            taken = {name: sent[name] for name in ("params", "headers", "json") if name in sent}
            answer = cafe.http.request(sent["method"], sent["url"], content=sent.get("data"), **taken)
            case.validate_response(answer, checks=CHECKS)

        ask()
    assert len(asked) >= 11
    assert sum(asked.values()) > 100


def test_there_is_an_example_for_everything(cafe: Shop) -> None:
    content = cafe.http.request("GET", "/openapi.json").json()
    shapes = content["components"]["schemas"]
    assert [name for name, shape in shapes.items() if "example" not in shape] == []
    for path, methods in content["paths"].items():
        for operation in methods.values():
            body = operation.get("requestBody", {}).get("content", {})
            answers = operation["responses"]
            good = next(answer for status, answer in answers.items() if status in ("200", "202"))
            for kind in (*body.values(), *good["content"].values()):
                assert "example" in kind or "example" in kind["schema"] or "$ref" in kind["schema"], path
            for parameter in operation.get("parameters", []):
                known = {"example", "examples", "default"} & {*parameter, *parameter["schema"]}
                assert known, (path, parameter["name"])


def test_monitoring_says_that_it_may_not_be_ready(cafe: Shop) -> None:
    content = cafe.http.request("GET", "/openapi.json").json()
    for path in ("/healthz", "/readyz", "/metrics"):
        assert {"200", "503"} <= content["paths"][path]["get"]["responses"].keys(), path
