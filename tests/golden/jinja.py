"""Makes tests/golden/jinja.json: what transformers renders of the templates in chat_templates/ and of random ones.

Run from the repository's root, with transformers and jinja2 installed:

    python tests/golden/jinja.py

Each case is a template, a context and the output, or null for an error. The templates are
in jinja_cases.py; random ones come from jinja_grammar.py.
"""

import datetime
import json
import pathlib
import re

import jinja2
import transformers
import transformers.utils.chat_template_utils as utils

from jinja_cases import CHATS, CONTEXT, EDGES, OPTIONS
from jinja_grammar import Grammar

FOLDER = pathlib.Path(__file__).resolve().parent
NOW = (2024, 7, 26, 9, 5, 3)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
# Texts that differ in each run, and errors that only a limit of ours gives.
UNSTABLE = re.compile(r" at 0x[0-9a-f]{6}|<built-in |<class ")


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(*NOW)


def render(template, context):
    try:
        return utils._cached_compile_jinja_template(template).render(**context)
    except Exception:
        return None


def render_chat(template, chat, options):
    try:
        return utils.render_jinja_template(
            [utils._normalize_chat_messages(chat)], chat_template=template, **TOKENS, **options
        )[0][0]
    except Exception:
        return None


def random_cases(wanted):
    cases, seed = [], 0
    while len(cases) < wanted:
        seed += 1
        template = Grammar(seed).template()
        output = render(template, CONTEXT)
        is_small = len(template) < 400 and len(output or "") < 400
        # One error for four outputs.
        if not is_small or UNSTABLE.search(output or "") or (output is None and seed % 4):
            continue
        cases.append([template, output])
    return cases


def main():
    utils.datetime = FixedTime
    chats = []
    for path in sorted((FOLDER / "chat_templates").glob("*.jinja")):
        source = path.read_text()
        for name, chat in CHATS.items():
            for number, options in enumerate(OPTIONS):
                chats.append([path.name, name, number, render_chat(source, chat, options)])
    edges = [[template, render(template, CONTEXT)] for template in EDGES]
    golden = {
        "made_with": f"transformers {transformers.__version__}, jinja2 {jinja2.__version__}",
        "now": NOW,
        "tokens": TOKENS,
        "chats": CHATS,
        "options": OPTIONS,
        "context": CONTEXT,
    }
    lines = [f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False)}" for key, value in golden.items()]
    for key, cases in (("chat_cases", chats), ("edges", edges), ("random", random_cases(500))):
        assert not any(UNSTABLE.search(case[-1] or "") for case in cases), key
        lines.append(
            f'"{key}":[\n'
            + ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
            + "\n]"
        )
    (FOLDER / "jinja.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
