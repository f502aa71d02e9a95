"""Answers of gpt-generate to random JSON schemas, checked by Python's jsonschema.

    pip install jsonschema rfc3339-validator fqdn rfc3987-syntax isoduration jsonpointer
    python3 tests/accuracy/constrained.py --bin build/bin [--count 10000] [--seed 1]

Each schema is a line's response_format; the demonstration model answers at temperature 1.5, so its
texts are near to random ones. A whole answer must be JSON that fits its schema under draft 2020-12,
formats included. Prints a count per outcome, and every answer that is wrong with its schema. Exit
status 1 if one is, or if a schema was refused that the script expects to be supported.
"""

import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ["name", "age", "a", "b", "ab", "first name", "x/y", "émile", 'quo"te', "n_1", "n_2", "id"]
# Patterns that Python's re reads as ECMAScript does.
PATTERNS = ["^[a-z]{2,5}$", "^a", "z$", "[0-9]+", "^(yes|no|maybe)$", "^[A-Z][a-z]* [A-Z]", "é",
            "^[^\"\\\\]{1,8}$", "^(?:[0-9]{3}-)+[0-9]{4}$", "^.{0,6}$", "^\\S+@\\S+$"]
FORMATS = ["date", "time", "date-time", "uuid", "email", "hostname", "ipv4", "ipv6", "uri",
           "duration", "json-pointer"]
VALUES = ["", "a", "ab", "b\"c", "\n", "é", 0, 1, -7, 2.5, True, False, None, [], [1, "a"],
          {"a": 1}, {"b": [None]}]


class Schemas:
    """Makes a random schema, most of which some value fits."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.refs = []

    def often(self, chance):
        return self.random.random() < chance

    def root(self):
        self.refs = []
        definitions = {}
        if self.often(0.4):
            for name in ["node", "a/b", "c~d"][: self.random.randint(1, 3)]:
                definitions[name] = self.schema(2)
                escaped = name.replace("~", "~0").replace("/", "~1")
                self.refs.append(f"#/$defs/{escaped}")
        schema = self.schema(3)
        if definitions:
            schema["$defs"] = definitions
            # A definition that leads to itself, through a property that may be left out.
            if self.often(0.5):
                definitions["node"] = {"type": "object", "properties": {
                    "value": self.schema(1), "next": {"$ref": "#/$defs/node"}},
                    "required": ["value"], "additionalProperties": False}
        return schema

    def schema(self, depth):
        kinds = [self.string, self.number, self.integer, self.listed, self.plain]
        if depth > 0:
            kinds += [self.object, self.object, self.array, self.array, self.any_of, self.one_of,
                      self.all_of]
            if self.refs:
                kinds += [self.reference] * 2
        schema = self.random.choice(kinds)(depth)
        if self.often(0.1):
            schema["description"] = "any text"
        kind = schema.get("type", "null")
        if self.often(0.05) and isinstance(kind, str) and kind != "null":
            schema["type"] = [schema["type"], "null"]
        return schema

    def reference(self, depth):
        return {"$ref": self.random.choice(self.refs)}

    def plain(self, depth):
        kinds = ["null", "boolean", "string", "integer", "number"]
        return self.random.choice([{"type": self.random.choice(kinds)},
                                   {"type": self.random.sample(kinds, 2)}])

    def listed(self, depth):
        if self.often(0.3):
            return {"const": self.random.choice(VALUES)}
        return {"enum": self.random.sample(VALUES, self.random.randint(1, 6))}

    def string(self, depth):
        schema = {"type": "string"}
        kind = self.random.randint(0, 3)
        if kind == 0:
            schema["minLength"] = self.random.randint(0, 12)
            if self.often(0.7):
                schema["maxLength"] = schema["minLength"] + self.random.randint(0, 12)
        elif kind == 1:
            schema["pattern"] = self.random.choice(PATTERNS)
            if self.often(0.3):
                schema["maxLength"] = self.random.randint(8, 30)
        elif kind == 2:
            schema["format"] = self.random.choice(FORMATS)
        else:
            schema["maxLength"] = self.random.randint(1, 20)
        return schema

    def bounds(self, whole):
        digits = self.random.randint(0, 4)

        def number():
            x = self.random.uniform(-10 ** digits, 10 ** digits)
            return round(x) if whole or self.often(0.3) else round(x, self.random.randint(1, 6))

        least, most = sorted([number(), number()])
        schema = {}
        if self.often(0.6):
            schema[self.random.choice(["minimum", "exclusiveMinimum"])] = least
        if self.often(0.6):
            schema[self.random.choice(["maximum", "exclusiveMaximum"])] = most + 2
        return schema

    def integer(self, depth):
        schema = {"type": "integer", **self.bounds(self.often(0.7))}
        if self.often(0.3):
            schema["multipleOf"] = self.random.choice([1, 2, 3, 5, 7, 10])
            if len(schema) == 4:
                schema.pop("maximum", schema.pop("exclusiveMaximum", None))
        return schema

    def number(self, depth):
        schema = {"type": "number", **self.bounds(False)}
        if len(schema) == 1 and self.often(0.5):
            # Powers of two: jsonschema divides in floating point.
            schema["multipleOf"] = self.random.choice([0.5, 0.25, 2, 3])
        return schema

    def object(self, depth):
        names = self.random.sample(NAMES, self.random.randint(0, 5))
        schema = {"type": "object", "properties": {n: self.schema(depth - 1) for n in names}}
        if self.often(0.8):
            schema["required"] = [n for n in names if self.often(0.6)]
        kind = self.random.randint(0, 3)
        if kind == 0:
            schema["additionalProperties"] = False
        elif kind == 1:
            schema["additionalProperties"] = self.schema(0)
        elif kind == 2 and self.often(0.5):
            schema["patternProperties"] = {"^n_": self.schema(0)}
            if self.often(0.5):
                schema["additionalProperties"] = self.schema(0)
        if self.often(0.15):
            schema["minProperties"] = self.random.randint(0, max(len(names), 1))
        if self.often(0.15):
            schema["maxProperties"] = max(len(names), 1) + self.random.randint(0, 2)
        return schema

    def array(self, depth):
        schema = {"type": "array"}
        if self.often(0.7):
            schema["items"] = self.schema(depth - 1)
        if self.often(0.3):
            schema["prefixItems"] = [self.schema(depth - 1)
                                     for _ in range(self.random.randint(1, 3))]
        if self.often(0.4):
            schema["minItems"] = self.random.randint(0, 4)
        if self.often(0.7):
            schema["maxItems"] = schema.get("minItems", 0) + self.random.randint(1, 4)
        return schema

    def any_of(self, depth):
        schema = {"anyOf": [self.schema(depth - 1) for _ in range(self.random.randint(1, 3))]}
        if self.often(0.2):
            schema["type"] = ["string", "integer", "object", "array", "number", "boolean", "null"]
        return schema

    def one_of(self, depth):
        if self.often(0.5):
            kinds = [self.string, self.integer, self.object, self.array, lambda _: {"type": "null"}]
            return {"oneOf": [kind(depth - 1) for kind in self.random.sample(kinds, 2)]}
        return {"oneOf": [{"type": "object", "required": ["kind"], "additionalProperties": False,
                           "properties": {"kind": {"const": kind}, "v": self.schema(depth - 1)}}
                          for kind in "pqr"[: self.random.randint(2, 3)]]}

    def all_of(self, depth):
        kind = self.random.randint(0, 2)
        if kind == 0:
            return {"allOf": [self.integer(0), {"maximum": 10 ** 6}]}
        if kind == 1:
            return {"allOf": [{"type": "string"}, {"minLength": self.random.randint(0, 3)},
                              {"pattern": self.random.choice(["^[a-z]*$", "e", "^[^x]+$"])}]}
        first, second = self.object(depth), self.object(depth)
        for one in (first, second):
            one.pop("additionalProperties", None)
            one.pop("maxProperties", None)
        second["properties"] = {n: s for n, s in second["properties"].items()
                                if n not in first["properties"]}
        second["required"] = [n for n in second.get("required", []) if n in second["properties"]]
        return {"allOf": [first, second]}


def outcome_of(answer, schema):
    if "error" in answer:
        message = answer["error"]["message"]
        known = {"no text fits the constraint": "schema without values",
                 "oneOf: it is not certain": "refused: oneOf",
                 "minProperties": "refused: minProperties"}
        return next((name for text, name in known.items() if text in message), "error: " + message)
    try:
        value = json.loads(answer["text"])
    except ValueError:
        return "cut by max_tokens" if answer["finish_reason"] == "length" else "not JSON"
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
    errors = [error.message for error in validator.iter_errors(value)]
    return "wrong: " + errors[0] if errors else "fits"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--model", default=ROOT / "models/gpt-demo")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    schemas = Schemas(options.seed)
    made = [schemas.root() for _ in range(options.count)]
    for schema in made:
        jsonschema.Draft202012Validator.check_schema(schema)
    lines = [json.dumps({"prompt": "Once upon a time", "max_tokens": 400, "response_format": {
        "type": "json_schema", "json_schema": {"name": "s", "schema": schema}}}) for schema in made]
    run = subprocess.run(
        [options.bin / "gpt-generate", "--model", options.model, "--input-format", "jsonl",
         "--temperature", "1.5", "--top-k", "0", "--top-p", "1", "--threads", "1", "--quiet"],
        input="\n".join(lines) + "\n", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    counts = collections.Counter()
    tokens = 0
    for schema, answer in zip(made, answers, strict=True):
        outcome = outcome_of(answer, schema)
        counts[outcome.split(":")[0] if outcome.startswith(("wrong", "error")) else outcome] += 1
        tokens += answer.get("completion_tokens", 0)
        if outcome.startswith(("wrong", "error", "not")):
            print(f"{outcome}\n  {json.dumps(schema)}\n  {answer.get('text')}", file=sys.stderr)
    for outcome, count in counts.most_common():
        print(f"{count}\t{outcome}")
    print(f"{tokens}\ttokens")
    return 1 if any(counts[one] for one in ("wrong", "error", "not JSON")) else 0


if __name__ == "__main__":
    sys.exit(main())
