"""What clients of OpenAI's API get from a hark-serve at the URL in the first argument, which serves the model demo.

The second argument is the folder of the tools. The working folder is the source tree's."""

import asyncio
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import langchain_openai
import litellm
import openai

BASE = sys.argv[1] + "/v1"
SAMPLES = pathlib.Path(__file__).parent.parent / "samples"
HAT = "He took off his hat and sat down by the fire."
GREEDY = {"model": "demo", "temperature": 0, "max_tokens": 12}
MESSAGES = [{"role": "user", "content": "Who is there?"}]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["Anna", "Ben"]}, "old": {"type": "boolean"}},
    "required": ["name", "old"],
    "additionalProperties": False,
}
client = openai.OpenAI(base_url=BASE)


def check(name, passed, found=""):
    print(f"{name}: {'passed' if passed else 'FAILED'}")
    assert passed, found


def check_person(name, text):
    person = json.loads(text) if isinstance(text, str) else text
    check(name, person["name"] in ("Anna", "Ben") and isinstance(person["old"], bool), text)


def openai_texts():
    check("openai models", [model.id for model in client.models.list()] == ["demo"])
    whole = client.completions.create(prompt="Once upon a time", **GREEDY)
    parts = client.completions.create(prompt="Once upon a time", stream=True, **GREEDY)
    streamed = "".join(part.choices[0].text for part in parts)
    check("openai completions", whole.usage.completion_tokens == 12 and streamed == whole.choices[0].text, streamed)
    chat = client.chat.completions.create(messages=MESSAGES, logprobs=True, top_logprobs=2, **GREEDY)
    check("openai logprobs", len(chat.choices[0].logprobs.content[0].top_logprobs) == 2)
    events = list(client.chat.completions.create(
        messages=MESSAGES, stream=True, stream_options={"include_usage": True}, **GREEDY))
    streamed = "".join(event.choices[0].delta.content or "" for event in events[:-1])
    check("openai chat stream", streamed == chat.choices[0].message.content, streamed)
    check("openai usage", events[-1].usage.total_tokens == chat.usage.total_tokens)
    embedded = client.embeddings.create(model="demo", input=["a", "b c"], dimensions=8)
    check("openai embeddings", [len(one.embedding) for one in embedded.data] == [8, 8])
    try:
        client.completions.create(model="other", prompt="x")
        check("openai errors", False)
    except openai.NotFoundError as error:
        check("openai errors", error.code == "model_not_found", error)


def openai_forms():
    form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}
    answer = client.chat.completions.create(messages=MESSAGES, response_format=form, **GREEDY | {"max_tokens": 60})
    check_person("openai json_schema", answer.choices[0].message.content)
    tool = {"type": "function", "function": {"name": "meet", "parameters": SCHEMA}}
    call = {"type": "object", "properties": {"name": {"const": "meet"}, "parameters": SCHEMA},
            "required": ["name", "parameters"], "additionalProperties": False}
    form["json_schema"]["schema"] = call
    answer = client.chat.completions.create(
        messages=MESSAGES, tools=[tool], response_format=form, **GREEDY | {"max_tokens": 60})
    choice = answer.choices[0]
    check("openai tools", choice.finish_reason == "tool_calls" and choice.message.tool_calls[0].function.name == "meet",
          choice)
    check_person("openai tool arguments", choice.message.tool_calls[0].function.arguments)
    asked = {"messages": MESSAGES, "tools": [tool], **GREEDY, "max_tokens": 60,
             "tool_choice": {"type": "function", "function": {"name": "meet"}}}
    choice = client.chat.completions.create(**asked).choices[0]
    [call] = choice.message.tool_calls
    check("openai tool choice", call.function.name == "meet" and choice.finish_reason == "tool_calls", choice)
    check_person("openai chosen tool's arguments", call.function.arguments)
    parts = [part for event in client.chat.completions.create(stream=True, **asked)
             for part in event.choices[0].delta.tool_calls or []]
    check("openai tool stream", parts[0].function.name == "meet" and
          "".join(part.function.arguments for part in parts) == call.function.arguments, parts)


def openai_audio():
    def transcribe(**options):
        with open(SAMPLES / "hat.wav", "rb") as file:
            return client.audio.transcriptions.create(model="demo", file=file, **options)

    check("openai transcriptions", transcribe().text == HAT)
    verbose = transcribe(response_format="verbose_json", timestamp_granularities=["word", "segment"])
    words = " ".join(word.word for word in verbose.words)
    check("openai words", words == HAT and verbose.language == "english" and len(verbose.segments) == 1, words)
    events = list(transcribe(stream=True))
    check("openai transcript stream", events[-1].type == "transcript.text.done" and events[-1].text == HAT, events)
    with open(SAMPLES / "vater.wav", "rb") as file:
        check("openai translations", client.audio.translations.create(model="demo", file=file).text != "")


async def openai_async():
    concurrent = openai.AsyncOpenAI(base_url=BASE)
    prompts = [f"Number {i} is" for i in range(16)]
    answers = await asyncio.gather(*[
        concurrent.completions.create(prompt=prompt, extra_body={"echo": True}, **GREEDY) for prompt in prompts])
    check("openai async", all(a.choices[0].text.startswith(p) for a, p in zip(answers, prompts)))
    stream = await concurrent.completions.create(prompt="x", n=8, stream=True, **GREEDY)
    async for _ in stream:
        break
    await stream.close()


def others():
    expected = client.chat.completions.create(messages=MESSAGES, **GREEDY).choices[0].message.content
    options = GREEDY | {"model": "openai/demo"}
    answer = litellm.completion(messages=MESSAGES, api_base=BASE, **options)
    check("litellm", answer.choices[0].message.content == expected, answer)
    parts = litellm.completion(messages=MESSAGES, api_base=BASE, stream=True, **options)
    check("litellm stream", "".join(part.choices[0].delta.content or "" for part in parts) == expected)
    model = langchain_openai.ChatOpenAI(base_url=BASE, model="demo", temperature=0, max_tokens=60)
    schema = SCHEMA | {"title": "person", "description": "A person."}
    for method in ("json_schema", "function_calling"):
        check_person(f"langchain {method}", model.with_structured_output(schema, method=method).invoke("Who?"))
    said = subprocess.run(["llm", "-m", "hark", "-o", "temperature", "0", "-o", "max_tokens", "12", "-n",
                           "Who is there?"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    check("llm", said.stdout.strip() == expected.strip(), said)


def gpt_eval(lines, *options):
    run = subprocess.run([f"{sys.argv[2]}/gpt-eval", "--model", "demo", "--format", "json", *options],
                         input=lines, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def lm_eval():
    """The questions of tests/clients/choices.jsonl, and the perplexity of their contexts."""
    questions = pathlib.Path("tests/clients/choices.jsonl").read_text()
    texts = "".join(json.dumps({"text": json.loads(line)["context"]}) + "\n" for line in questions.splitlines())
    expected = {"hark_choices": gpt_eval(questions, "--task", "choice"), "hark_texts": gpt_eval(texts)}
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            ["lm_eval", "--model", "local-completions", "--tasks", ",".join(expected), "--include_path",
             "tests/clients", "--output_path", folder, "--model_args",
             f"model=demo,base_url={BASE}/completions,tokenizer=models/gpt-demo,max_length=256"],
            env=os.environ | {"HF_HOME": folder, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"},
            capture_output=True, text=True)
        check("lm-eval runs", run.returncode == 0, run.stderr)
        found = json.loads(next(pathlib.Path(folder).rglob("results_*.json")).read_text())["results"]
    for task, name in (("hark_choices", "acc"), ("hark_choices", "acc_norm"),
                       ("hark_texts", "word_perplexity"), ("hark_texts", "byte_perplexity")):
        ours, theirs = expected[task][name], found[task][f"{name},none"]
        check(f"lm-eval {name}", math.isclose(ours, theirs, rel_tol=1e-5), f"gpt-eval {ours}, lm-eval {theirs}")
    check("lm-eval acc and acc_norm differ", expected["hark_choices"]["acc"] != expected["hark_choices"]["acc_norm"])


openai_texts()
openai_forms()
openai_audio()
asyncio.run(openai_async())
others()
lm_eval()
