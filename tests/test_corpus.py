"""Published templates and the exact prompts for them, where the corpus lies beside the repository."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from pathlib import Path

import pytest

from strata_cli.conversation import openai
from strata_cli.errors import StrataError
from strata_cli.prompt.template import ChatTemplate
from strata_cli.prompt.turn import compose

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
NOW = datetime.datetime.fromtimestamp(1795996800, datetime.timezone.utc)


def _cases() -> dict[str, list[dict[str, object]]]:
    groups: dict[str, list[dict[str, object]]] = defaultdict(list)
    if CORPUS.is_dir():
        for line in (CORPUS / "cases.jsonl").read_bytes().splitlines():
            case = json.loads(line)
            groups[case["template"]].append(case)
    return groups


CASES = _cases()


@pytest.mark.skipif(not CASES, reason="the corpus is not here")
@pytest.mark.parametrize("name", sorted(CASES))
def test_every_prompt_is_exact(name: str) -> None:
    source = (CORPUS / "templates" / f"{name}.jinja").read_bytes().decode()
    template = ChatTemplate(source, bos="<BOS>", eos="<EOS>", now=NOW)
    for case in CASES[name]:
        try:
            outcome = compose(template, openai.parse(case["request"])).text
        except StrataError as error:
            assert "error" in case, f"{case['case']}: {error.message}"
        else:
            assert outcome == case.get("prompt"), case["case"]
