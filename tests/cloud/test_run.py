"""Recordings are transcribed on instances that come, break and go."""
import os
import random
import shutil
import signal
import time

from cloud import SOURCE, Story, launch_fault


class Runs(Story):
    def test_a_run(self):
        self.begin()
        self.recordings()
        said = self.transcribe("--type", "gpu_1x_a10", "--budget", "20")
        self.assertIn("never more than the budget of $20.00", said)
        self.assertIn("3 transcribed, 0 failed, 0 left", said)
        self.assertRegex(said, r"\$[0-9.]+ in all for this run")
        self.expect_transcripts()
        self.expect_end(1)
        # All is there: nothing is rented.
        self.assertIn("3 transcribed", self.transcribe())
        self.expect_end(1)

    def test_a_broken_recording_fails_alone(self):
        self.begin()
        (self.recordings("hat.wav", "key.wav") / "broken.wav").write_bytes(b"no sound")
        said = self.transcribe(status=1)
        self.assertIn("2 transcribed, 1 failed, 0 left", said)
        self.assertIn("recordings/broken.wav\t", (self.out / "failed.tsv").read_text())
        self.expect_end(1)
        self.assertIn("2 transcribed, 1 failed", self.transcribe(status=1))
        self.expect_end(1)
        self.transcribe("--retry", status=1)
        self.expect_end(2)

    def test_wrong_options_cost_nothing(self):
        self.begin()
        self.recordings()
        words = self.run_words()
        self.assertIn("no option '--no-such'", self.hark(*words, "--no-such", status=2))
        self.assertIn("not an option of a job", self.hark(*words, "--output-name", "x", status=2))
        self.assertIn("cannot read", self.hark("run", "-o", self.out, "--files-from", "absent", "--package",
                                               os.environ["HARK_CLOUD_PACKAGE"], status=1))
        self.assertIn("expected a tar file", self.hark("run", "-o", self.out, self.folder / "recordings", "--package",
                                                       self.folder / "recordings/hat.wav", status=1))
        self.transcribe("--dry-run")
        self.expect_end(0)

    def test_a_model_that_is_nowhere(self):
        self.begin()
        self.recordings()
        self.hark(*self.run_words("--type", "gpu_1x_a10")[:-4], "--model", "no-such-model", status=1)
        self.expect_end(1)

    def test_an_instance_that_hangs_while_it_gets_a_model_is_replaced(self):
        self.speed = 20
        self.begin()
        self.recordings("hat.wav")
        process = self.start(*self.run_words("--type", "gpu_1x_a10")[:-4], "--model", "no-such-model")
        self.wait_for(lambda: list((self.folder / "machines").glob("*/home/hark/files")))
        self.set_fate("hang 0")
        self.assertEqual(process.wait(), 1)
        self.assertIn("no model 'no-such-model' there", self.said.read_text())
        self.expect_end(2)

    def test_names_that_depend_on_one_another(self):
        self.begin()
        folder = self.recordings("hat.wav", "key.wav", "alarm.wav")
        shutil.copy(folder / "key.wav", folder / "hat.flac.wav")
        shutil.copy(folder.parents[0] / "recordings/alarm.wav", folder / "hat 'a\" b.wav")
        shutil.copy(next((SOURCE / "samples").glob("*.mp3")), folder / "hat.mp3")
        self.transcribe("--shard", "1")
        names = [name for name in self.transcripts() if name.endswith("txt")]
        self.assertEqual(names, ["alarm.txt", "hat 'a\" b.txt", "hat.flac.txt", "hat.mp3.txt", "hat.wav.txt",
                                 "key.txt"])
        self.expect_end(1)

    def test_the_key_and_capacity_story_of_a_bad_day(self):
        self.begin(capacity={"gpu_1x_a10": ["us-east-1"]}, fates=["802", "unhealthy", "preempt 100", "good"], faults=[
            launch_fault("400 instance-operations/launch/insufficient-capacity"), launch_fault("429"),
            launch_fault("lost"),
            {"on": "GET /instances", "do": "500"}, {"on": "POST /instance-operations/terminate", "do": "drop"}])
        self.recordings()
        self.transcribe("--type", "gpu_1x_a10", "--wait", "10h")
        self.expect_transcripts()
        self.expect_end()

    def test_an_instance_that_hangs_is_replaced(self):
        self.begin(fates=["hang 150"])
        self.recordings(*[f"{i}/hat.wav" for i in range(8)])
        self.transcribe("--shard", "2")
        self.expect_transcripts(8)
        self.expect_end()

    def test_an_instance_that_vanishes_is_replaced(self):
        self.begin(fates=["vanish 200", "preempt 250"])
        self.recordings(*[f"{i}/hat.wav" for i in range(8)])
        self.transcribe("--shard", "2")
        self.expect_transcripts(8)
        self.expect_end()

    def test_no_capacity_in_the_middle(self):
        self.begin(fates=["vanish 200"], capacity={"gpu_1x_a10": ["us-east-1"]}, faults=[
            launch_fault("400 instance-operations/launch/insufficient-capacity", skip=1, times=4)])
        self.recordings(*[f"{i}/hat.wav" for i in range(6)])
        self.transcribe("--shard", "2", "--type", "gpu_1x_a10", "--wait", "10h")
        self.expect_transcripts(6)
        self.expect_end(2)

    def test_three_machines_one_killed_have_the_bytes_of_one(self):
        names = [f"{i % 3}/{i}/{name}" for i in range(3) for name in ("alarm.wav", "hat.wav", "key.wav")]
        self.begin()
        (self.recordings(*names) / "broken.wav").write_bytes(b"no sound")
        self.transcribe(status=1)
        expected = self.transcripts()
        self.expect_end(1)
        self.begin(fates=["good", "vanish 150", "good"])
        (self.recordings(*names) / "broken.wav").write_bytes(b"no sound")
        self.transcribe("--machines", "3", "--shard", "1", status=1)
        got = self.transcripts()
        for files in (got, expected):
            files["failed.tsv"] = files["failed.tsv"].split(b"recordings/")[1]
        self.assertEqual(got, expected)
        self.assertGreaterEqual(self.state()["launches"], 4)
        self.expect_end()

    def test_no_recording_is_done_twice(self):
        self.begin()
        self.recordings(*[f"{i}/hat.wav" for i in range(9)])
        self.transcribe("--machines", "3", "--shard", "1")
        jobs = (self.folder / "jobs").read_text().split()
        self.assertEqual(len(jobs), 9)
        self.assertEqual(len(set(jobs)), 3)
        self.expect_transcripts(9)
        self.expect_end(3)

    def test_the_budget_is_kept(self):
        self.speed = 20
        self.begin()
        self.recordings(*[f"{i}/hat.wav" for i in range(12)])
        said = self.transcribe("--shard", "1", "--type", "gpu_8x_a100", "--budget", "2.50", status=1)
        self.assertIn("the budget of $2.50 is used up", said)
        spent = float(said.rsplit(" in all", 1)[0].rsplit("$", 1)[1])
        self.assertLessEqual(spent, 2.5)
        self.expect_end(1)
        self.transcribe("--shard", "20", "--type", "gpu_1x_a10", "--budget", "100")
        self.expect_transcripts(12)
        self.expect_end(2)

    def test_a_signal_ends_it_and_the_same_command_continues(self):
        self.begin()
        self.recordings(*[f"{i}/hat.wav" for i in range(6)])
        process = self.start(*self.run_words("--shard", "2"))
        self.wait_for(lambda: list(self.out.rglob("*.txt")))
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(process.wait(), 130)
        self.expect_end(1)
        self.transcribe("--shard", "2")
        self.expect_transcripts(6)
        self.expect_end(2)

    def test_kept_instances_are_used_again(self):
        self.begin()
        self.recordings("hat.wav")
        self.assertIn("left running", self.transcribe("--keep"))
        self.recordings("key.wav")
        self.assertIn("is there from before", self.transcribe())
        self.expect_transcripts(2)
        self.expect_end(1)

    def test_kill_at_random_moments(self):
        self.speed = 300
        self.begin()
        self.recordings(*[f"{i}/{name}" for i in range(3) for name in ("alarm.wav", "hat.wav", "key.wav")])
        self.transcribe("--shard", "2", "--machines", "2")
        expected = self.transcripts()
        self.expect_end(2)
        chance = random.Random(int(os.environ.get("HARK_CLOUD_SEED", "1")))
        kills = 0
        while kills < int(os.environ.get("HARK_CLOUD_KILLS", "20")):
            if (self.out / ".hark").exists() and len(list(self.out.rglob("*.txt"))) == 9:
                # One that was killed after its work ends what it has left running.
                self.transcribe("--shard", "2", "--machines", "2")
                self.assertEqual(self.transcripts(), expected)
                self.expect_end()
                shutil.rmtree(self.out)
            process = self.start(*self.run_words("--shard", "2", "--machines", "2"))
            time.sleep(chance.random() * 6)
            if process.poll() is None:
                process.kill()  # it alone: its workers are left, as after a kill by the system
                kills += 1
            process.wait()
            for name, text in self.transcripts().items():
                self.assertEqual(text, expected[name], name)
        self.transcribe("--shard", "2", "--machines", "2")
        self.assertEqual(self.transcripts(), expected)
        self.expect_end()
