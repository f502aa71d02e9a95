"""hark-serve's page: the chat about the transcript."""
import json
import urllib.request

from page_case import PAUSED, TIME, equal, true
from server_case import ServerCase, sample

STATUS = "return document.getElementById('chat-status').textContent"
IDLE = "return document.getElementById('stop-answer').hidden"
MESSAGES = """return [...document.querySelectorAll('.message')].map(
    (message) => [message.classList[1], message.textContent])"""

# Gives each chat a seed, so that its answer can be computed again.
SEEDED = """
    const before = globalThis.fetch;
    globalThis.fetch = (path, request) => before(path, path !== 'v1/chat/completions' ? request
        : {...request, body: JSON.stringify({...JSON.parse(request.body), seed: 1})});"""

# Answers each chat with these pieces, one after another, in place of the server: the demonstration
# model cites nothing.
ANSWERED = """
    const pieces = arguments[0], before = globalThis.fetch;
    globalThis.fetch = async (path, request) => {
        if (path !== 'v1/chat/completions') return before(path, request);
        const encoder = new TextEncoder();
        const event = (data) => encoder.encode(`data: ${JSON.stringify(data)}\\n\\n`);
        return new Response(new ReadableStream({async start(stream) {
            for (const content of pieces) {
                if (request.signal.aborted) return stream.error(request.signal.reason);
                stream.enqueue(event({choices: [{delta: {content}}]}));
                await new Promise((resolve) => setTimeout(resolve, 10));
            }
            stream.enqueue(event({choices: [{delta: {}, finish_reason: 'stop'}]}));
            stream.enqueue(encoder.encode('data: [DONE]\\n\\n'));
            stream.close();
        }}));
    };"""


class ServerChat(ServerCase):
    def ask(self, question):
        self.browser.fill("#question", question)
        self.browser.click("#send")
        self.browser.wait(IDLE, "the answer has ended", seconds=60)
        equal(self.browser.run(STATUS), "", "status of the chat")

    def test_an_answer_is_the_models(self):
        self.open_server()
        self.transcribe(sample("hat.wav"))
        self.posted("")
        self.browser.run(SEEDED)
        self.ask("What does he wear?")
        request, = self.posted("/v1/chat/completions")
        system, user = request["messages"]
        equal(user, {"role": "user", "content": "What does he wear?"}, "question")
        lines = system["content"].split("Transcript of hat.wav:\n")[1].splitlines()
        [segment] = json.loads(self.download("json"))["segments"]
        equal(lines, [f"[00:00] {segment['text'].strip()}"], "lines of the transcript")
        (_, question), (kind, answer), *notes = self.browser.run(MESSAGES)
        equal((question, kind), ("What does he wear?", "assistant"), "messages")
        equal(answer, self.answer(request).lstrip(), "the answer")
        true(answer.strip() != "", "the answer is empty")
        # What was said before is asked again with the next question.
        self.ask("Why?")
        second, = self.posted("/v1/chat/completions")
        equal([message["content"] for message in second["messages"][1:]][-1], "Why?", "question")
        self.browser.click("#new-chat")
        equal(self.browser.run(MESSAGES), [], "messages of a new chat")

    def answer(self, request):
        """What the server answers to a program."""
        asked = urllib.request.Request(
            self.server.url + "/v1/chat/completions",
            json.dumps(dict(request, stream=False)).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=60) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]

    def test_a_long_transcript_is_cut_and_said_to_be(self):
        self.open_server(self.serve("--model", "demo", "--chat-template", self.template.name,
                                    "--context", "340"))
        self.transcribe(self.story)
        lines = self.download("txt").splitlines()
        sent, note = self.sent_lines()
        true(1 < len(sent) < len(lines), f"{len(sent)} of {len(lines)} lines are sent")
        equal(sent, lines[:len(sent)], "the lines around the beginning")
        true("longer than the model\u2019s context of 340 tokens" in note and
             f"00:00 to {self.ends()[len(sent) - 1]}" in note, note)
        self.picture("server-chat-cut")
        # Around the place that is played.
        self.browser.click("#new-chat")
        last = self.browser.run("return hark.editor.transcript.words.at(-1).start")
        self.browser.run("hark.editor.player.seek(arguments[0])", last)
        sent, note = self.sent_lines()
        equal(sent, lines[-len(sent):], "the lines around the end")
        true(f"to {self.ends()[-1]}." in note, note)

    def sent_lines(self):
        """The texts of the lines that are sent with a question, and the note about them."""
        self.posted("")
        self.ask("Who is old?")
        request, = self.posted("/v1/chat/completions")
        lines = request["messages"][0]["content"].split("story.mp3:\n")[1].splitlines()
        (_, _), (kind, note), *_ = self.browser.run(MESSAGES)
        equal(kind, "note", "a note")
        return [line.split("] ", 1)[1] for line in lines], note

    def ends(self):
        seconds = self.browser.run(
            "return hark.editor.transcript.segments.map(({data}) => Math.floor(data.end))")
        return [f"{end // 60:02}:{end % 60:02}" for end in seconds]

    def test_times_are_links(self):
        self.open_server()
        self.transcribe(self.story)
        hostile = "<img src=x onerror=alert(1)>"
        self.browser.run(ANSWERED, ["He ", "is old [00", ":1", "2], ", hostile,
                                    " and (0:07-0:09).", " Not 59:59, 3:2 or 1:2:3:4."])
        self.ask("Who?")
        equal(self.browser.run(MESSAGES)[-1],
              ["assistant", f"He is old [00:12], {hostile} and (0:07-0:09)."
               " Not 59:59, 3:2 or 1:2:3:4."], "answer")
        equal(self.browser.run("return document.images.length"), 0, "images")
        links = "return [...document.querySelectorAll('.message a')].map((a) => a.textContent)"
        equal(self.browser.run(links), ["00:12", "0:07", "0:09"], "links")
        self.browser.click(".message a")
        at = self.browser.run(TIME)
        true(12 <= at < 13.5, f"a link to 0:12 seeks to {at} s")
        equal(self.browser.run(PAUSED), False, "paused")
        equal(self.browser.run("return location.hash"), "", "the address")
        self.picture("server-chat")

    def test_an_answer_is_stopped(self):
        self.open_server()
        self.transcribe(sample("hat.wav"))
        self.browser.run(ANSWERED, ["word "] * 100000)
        self.browser.fill("#question", "Who?")
        self.browser.click("#send")
        self.browser.wait("return document.querySelector('.assistant')?.textContent", "a word")
        self.browser.click("#stop-answer")
        self.browser.wait(f"{STATUS} === 'Stopped'", "the answer is stopped")
        equal(self.browser.run(IDLE), True, "the answer has ended")
        # A new chat stops one, too.
        self.browser.fill("#question", "Why?")
        self.browser.click("#send")
        second = "return document.querySelectorAll('.assistant')[1]?.textContent"
        self.browser.wait(second, "a word")
        self.browser.click("#new-chat")
        equal(self.browser.run("return document.getElementById('send').disabled"), False, "Ask")
        equal(self.browser.run(MESSAGES), [], "messages of a new chat")
        equal(self.browser.run(STATUS), "", "status")

    def test_without_a_language_model(self):
        server = self.serve("--model", sample("../models/whisper-demo"))
        self.open_server(server)
        self.transcribe(sample("hat.wav"))
        true("no language model" in self.text("#no-chat"), self.text("#no-chat"))
        equal(self.is_hidden("#no-chat"), False, "hidden")
        equal(self.is_hidden("#ask"), True, "a question can be asked")
        self.picture("server-no-chat")

    def test_without_a_whisper_model(self):
        server = self.serve("--model", sample("../models/gpt-demo"))
        self.open_server(server)
        true("no Whisper model" in self.text("#no-microphone"), self.text("#no-microphone"))
        for control in ("file", "record", "translate"):
            equal(self.browser.run(f"return document.getElementById('{control}').disabled"), True,
                  control)
