"""Training on instances: checkpoints come down, and another instance continues to the same bits."""
import os
import random
import shutil
import subprocess
import time

from cloud import LAMBDA, PATIENCE, SOURCE, Story


class Training(Story):
    speed = 300

    def prepare(self):
        folder = self.folder / "text"
        folder.mkdir()
        text = "".join((SOURCE / "docs" / name).read_text() for name in ("formats.md", "development.md"))
        (folder / "book.txt").write_text(text)
        tokenize = os.environ["HARK_CLOUD_BIN"] + "/gpt-tokenize"
        subprocess.run([tokenize, "--train-tokenizer", "--vocab-size", "300", "--output-dir", folder / "tok",
                        folder / "book.txt"], check=True, stderr=subprocess.DEVNULL)
        with open(folder / "train.bin", "wb") as tokens:
            subprocess.run([tokenize, "--tokenizer", folder / "tok", folder / "book.txt"], check=True, stdout=tokens)
        self.options = ["--tokenizer", folder / "tok", "--train", folder / "train.bin", "--layers", "2",
                        "--width", "32", "--heads", "2", "--sequence-length", "32",
                        "--batch-size", "2", "--steps", "4000", "--warmup",
                        "10", "--save-every", "500", "--keep", "20", "--threads", "1"]

    def words(self, *words):
        return ["train", "-o", self.out, "--package", os.environ["HARK_CLOUD_PACKAGE"], *words, "--", *self.options]

    def expected(self):
        """The weights of a run that nothing disturbs, on this machine."""
        subprocess.run([os.environ["HARK_CLOUD_BIN"] + "/gpt-train", *map(str, self.options), "--output-dir",
                        self.folder / "whole"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return (self.folder / "whole/model.safetensors").read_bytes()

    def expect_trained(self, expected=None):
        self.assertEqual((self.out / "model.safetensors").read_bytes(), expected or self.expected())
        steps = sorted(path.name for path in self.out.glob("step-*"))
        self.assertEqual(steps, [f"step-{step:08}" for step in range(500, 4001, 500)])
        lines = (self.out / "run.tsv").read_text().splitlines()
        self.assertEqual({line.split("\t")[0] for line in lines[1:]}, {str(step) for step in range(1, 4001)})

    def test_training_comes_down(self):
        self.begin()
        self.prepare()
        said = self.hark(*self.words("--type", "gpu_1x_a10"))
        self.assertIn("is trained", said)
        self.expect_trained()
        self.expect_end(1)
        self.hark(*self.words("--type", "gpu_1x_a10"))
        self.expect_end(1)

    def test_it_continues_on_another_instance_to_the_same_bits(self):
        self.begin()
        self.prepare()
        process = self.start(*self.words("--type", "gpu_1x_a10"))
        self.wait_for(lambda: list(self.out.glob("step-*")))
        first = self.state()["running"][0]["id"]
        # The instance ends in the middle.
        subprocess.run([LAMBDA, "down", first], env=self.environ, check=True,
                       stderr=subprocess.DEVNULL)
        self.assertEqual(process.wait(timeout=PATIENCE), 0, self.said.read_text())
        self.expect_trained()
        self.expect_end(2)

    def test_a_killed_command_continues_with_its_instance(self):
        self.begin()
        self.prepare()
        process = self.start(*self.words("--type", "gpu_1x_a10"))
        self.wait_for(lambda: list(self.out.glob("step-*")))
        process.kill()
        process.wait()
        said = self.hark(*self.words("--type", "gpu_1x_a10"))
        self.assertIn("is there from before", said)
        self.expect_trained()
        self.expect_end(1)

    def test_kill_at_random_moments(self):
        self.begin()
        self.prepare()
        expected = self.expected()
        chance = random.Random(int(os.environ.get("HARK_CLOUD_SEED", "1")))
        kills = 0
        while kills < int(os.environ.get("HARK_CLOUD_KILLS", "20")):
            if (self.out / ".hark/lambda/trained").exists():
                # One that was killed after its work ends what it has left running.
                self.hark(*self.words("--type", "gpu_1x_a10"))
                self.expect_trained(expected)
                self.expect_end()
                shutil.rmtree(self.out)
            process = self.start(*self.words("--type", "gpu_1x_a10"))
            time.sleep(chance.random() * 6)
            if process.poll() is None:
                process.kill()
                kills += 1
            process.wait()
        self.hark(*self.words("--type", "gpu_1x_a10"))
        self.expect_trained(expected)
        self.expect_end()

    def test_another_type_is_refused(self):
        self.begin()
        self.prepare()
        self.hark(*self.words("--type", "gpu_1x_a10"))
        self.assertIn("was begun on gpu_1x_a10", self.hark(*self.words("--type", "gpu_1x_h100_pcie"), status=1))
        self.expect_end(1)

    def test_wrong_settings(self):
        self.begin()
        self.prepare()
        self.options[self.options.index("--heads") + 1] = "7"
        said = self.hark(*self.words(), status=1)
        self.assertIn("gpt-train failed there with status 2", said)
        self.assertIn("--heads: expected a divisor", said)
        self.expect_end(1)
