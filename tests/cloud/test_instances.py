"""Instances come up, are found, cost money and end."""
import os
import re
import time
from pathlib import Path

from cloud import KEY, Story, launch_fault


class Instances(Story):
    def test_types_have_prices_and_capacity(self):
        self.begin(capacity={"gpu_1x_a10": ["us-east-1", "us-west-1"]})
        lines = self.hark("types").splitlines()
        self.assertRegex(lines[2], r"^gpu_1x_a10 +1\.29 +1 +A10 \(24 GB PCIe\) +200 +us-east-1,us-west-1$")
        self.assertRegex(lines[3], r"^gpu_1x_gh200 .* -$")

    def test_up_status_ssh_down(self):
        self.begin()
        said = self.hark("up", "--type", "gpu_1x_a10", "--deadline", "2h")
        self.assertIn("up to 1 instance(s) of at most $1.29 per hour each, billed per minute; at most $2.58", said)
        self.assertIn("ready: a kernel ran on 1 x NVIDIA A10", said)
        name = said.splitlines()[0]
        self.assertRegex(name, r"^hark-up[0-9a-f]{6}-t[0-9]+-1$")
        state = self.state()["running"][0]
        self.assertEqual(state["tags"][0], {"key": "hark-run", "value": name.split("-")[1]})
        status = self.hark("status")
        self.assertRegex(status, name + r" +" + state["id"] + r" +gpu_1x_a10 +us-east-1 +active +10.66.0.1 +0\.")
        self.assertIn("$1.29 per hour now", status)
        self.assertEqual(self.hark("ssh", name, "echo", "$HARK_MACHINE"), "10.66.0.1\n")
        self.hark("down", "other", status=1)
        self.hark("down", name)
        self.expect_end(1)

    def test_no_capacity_then_capacity(self):
        self.begin(capacity={})
        process = self.start("up", "--type", "gpu_1x_h100_pcie,gpu_1x_a10", "--wait", "10h")
        self.wait_for(lambda: "waiting" in self.said.read_text())
        self.set_capacity({"gpu_1x_a10": ["us-west-1"]})
        self.assertEqual(process.wait(), 0)
        self.assertEqual(self.state()["running"][0]["region"]["name"], "us-west-1")
        self.hark("down", "--all")
        self.expect_end(1)

    def test_waiting_has_an_end(self):
        self.begin(capacity={})
        self.assertIn("for 10m; give more types", self.hark("up", "--wait", "10m", status=1))
        self.expect_end(0)

    def test_listed_capacity_is_a_hint(self):
        refuse = launch_fault("400 instance-operations/launch/insufficient-capacity", times=2)
        self.begin(faults=[refuse])
        self.hark("up", "--type", "gpu_1x_a10")
        self.hark("down", "--all")
        self.expect_end(1)

    def test_a_named_region_is_tried_without_listed_capacity(self):
        self.begin(capacity={}, faults=[])
        self.hark("up", "--type", "gpu_1x_a10", "--region", "us-south-1", "--wait", "5m", status=1)
        self.assertIn("POST /instance-operations/launch", self.state()["log"])
        self.expect_end(0)

    def test_a_lost_launch_is_adopted_not_repeated(self):
        for fault in ("lost", "late", "half"):
            with self.subTest(fault):
                self.begin(faults=[launch_fault(fault)])
                self.assertIn("found, it was launched", self.hark("up", "--type", "gpu_1x_a10"))
                self.hark("down", "--all")
                self.expect_end(1)

    def test_a_launch_that_never_arrived_is_repeated(self):
        self.begin(faults=[launch_fault("drop"), launch_fault("500"),
                           launch_fault("503 provider/internal-unavailable")])
        self.hark("up", "--type", "gpu_1x_a10")
        self.hark("down", "--all")
        self.expect_end(1)

    def test_too_many_requests(self):
        self.begin(faults=[launch_fault("429", times=2), {"on": "GET /instance-types", "do": "429 7", "times": 3}])
        self.hark("up", "--type", "gpu_1x_a10")
        self.hark("down", "--all")
        self.expect_end(1)

    def test_it_keeps_to_the_rate_limits(self):
        self.speed = 4
        self.begin(capacity={"gpu_1x_a10": ["us-east-1"]}, faults=[
            launch_fault("400 instance-operations/launch/insufficient-capacity", times=3)])
        processes = [self.start("types") for _ in range(3)]
        for process in processes:
            self.assertEqual(process.wait(), 0)
        process = self.start("up", "--type", "gpu_1x_a10,gpu_1x_a10")
        self.wait_for(lambda: self.state()["launches"] == 1)
        process.terminate()
        process.wait()
        self.assertEqual(self.state()["too_fast"], 0)
        self.expect_end(1)

    def test_a_wrong_key(self):
        self.begin()
        said = self.hark("up", status=1, LAMBDA_API_KEY="wrong")
        self.assertIn("Lambda does not take the key; give --api-key-file FILE or LAMBDA_API_KEY", said)
        self.expect_end(0)

    def test_the_key_is_in_a_file(self):
        self.begin()
        keys = self.folder / "home/.lambda_cloud"
        keys.mkdir()
        (keys / "lambda_keys").write_text(f"api_key = {KEY}\n")
        self.hark("types", LAMBDA_API_KEY="")
        (keys / "lambda_keys").unlink()
        self.assertIn("cannot read this file", self.hark("types", status=1, LAMBDA_API_KEY=""))

    def test_the_key_is_in_no_argument(self):
        self.begin()
        process = self.start("up", "--type", "gpu_1x_a10")
        seen = set()
        while process.poll() is None:
            for path in os.listdir("/proc"):
                try:
                    text = Path(f"/proc/{path}/cmdline").read_bytes() if path.isdigit() else b""
                except OSError:
                    continue
                if b"curl" in text:
                    seen.add(text)
                self.assertNotIn(KEY.encode(), text)
        self.assertGreater(len(seen), 3)
        self.hark("down", "--all")
        self.expect_end(1)

    def test_unhealthy_stuck_deaf_and_error_802_are_replaced(self):
        self.begin(fates=["unhealthy", "stuck", "deaf", "802"])
        said = self.hark("up", "--type", "gpu_1x_a10")
        for words in ("ssh does not answer", "cuInit: CUDA error 802"):
            self.assertIn(words, said)
        for state, least in ("unhealthy", 8), ("booting", 40):
            self.assertGreaterEqual(int(re.search(rf"{state} for (\d+) minutes", said)[1]), least)
        self.assertEqual(len(self.state()["running"]), 1)
        self.hark("down", "--all")
        self.expect_end(5)

    def test_an_error_802_that_passes_is_waited_for(self):
        self.begin(fates=["802-once"])
        self.hark("up", "--type", "gpu_1x_a10")
        self.hark("down", "--all")
        self.expect_end(1)

    def test_five_broken_ones_are_enough(self):
        self.begin(fates=["802"] * 6)
        self.assertIn("five instances came up broken", self.hark("up", "--type", "gpu_1x_a10", status=1))
        self.expect_end(5)

    def test_dearer_ones_are_refused(self):
        self.begin()
        said = self.hark("up", "--type", "gpu_1x_h100_pcie", "--max-price", "2", status=1)
        self.assertIn("none costs at most $2.00 per hour", said)
        self.hark("up", "--type", "nonsense", status=1)
        self.assertIn("more than 0", self.hark("up", "--budget", "0", status=2))
        self.expect_end(0)

    def test_terminate_fails_and_is_repeated(self):
        self.begin(fates=["slow-end"], faults=[{"on": "POST /instance-operations/terminate", "do": "500", "times": 3},
                                              {"on": "POST /instance-operations/terminate", "do": "lost"}])
        self.hark("up", "--type", "gpu_1x_a10")
        self.hark("down", "--all")
        self.expect_end(1)

    def test_one_that_is_gone_is_down(self):
        self.begin()
        name = self.hark("up", "--type", "gpu_1x_a10").splitlines()[0]
        self.set_fate("vanish 0")
        self.wait_for(lambda: not self.state()["running"])
        self.hark("down", name, status=1)
        self.expect_end(1)

    def test_one_that_cannot_be_terminated_is_printed_loudly(self):
        self.begin(fates=["lasting"])
        self.hark("up", "--type", "gpu_1x_a10")
        identity = self.state()["running"][0]["id"]
        said = self.hark("down", "--all", status=1)
        self.assertRegex(said, f"LEFT RUNNING AND BILLED: {identity} hark-up.*, \\$1.29 per hour")

    def test_up_that_is_interrupted_leaves_nothing(self):
        moments = {
            "its start": lambda state: True,
            "a request": lambda state: state["log"],
            "the launch": lambda state: state["launches"],
            "the boot's end": lambda state: any(one["status"] == "active" for one in state["running"])}
        for moment, condition in moments.items():
            with self.subTest(moment):
                self.begin()
                process = self.start("up", "--type", "gpu_1x_a10")
                self.wait_for(lambda: condition(self.state()))
                process.terminate()
                # -15: before it could answer; 0: it was through.
                self.assertIn(process.wait(), (0, 143, -15) if moment == "its start" else (0, 143))
                if process.returncode == 0:
                    self.hark("down", "--all")
                self.expect_end()

    def test_the_reaper_takes_what_a_killed_command_left(self):
        self.begin()
        process = self.start("up", "--type", "gpu_1x_a10")
        self.wait_for(lambda: self.state()["running"])
        process.kill()
        process.wait()
        self.assertIn("older than 12h", self.hark("reap"))
        self.assertEqual(len(self.state()["running"]), 1)
        time.sleep(70 / self.speed)
        self.hark("reap", "--older", "1m")
        self.expect_end(1)

    def test_the_deadline_outlives_this_computer(self):
        self.begin()
        self.hark("up", "--type", "gpu_1x_a10", "--deadline", "30m")
        self.assertEqual(len(self.state()["running"]), 1)
        self.wait_for(lambda: not self.state()["running"])
        self.expect_end(1)

    def test_filesystems(self):
        self.begin()
        self.hark("up", "--filesystem", "models", status=2)
        self.assertIn("none of this name", self.hark("up", "--filesystem", "models", "--region", "us-west-1", status=1))
        self.hark("up", "--type", "gpu_1x_a10", "--filesystem", "models", "--region", "us-east-1")
        self.hark("down", "--all")
        self.expect_end(1)

    def test_an_answer_that_is_not_lambdas(self):
        self.begin(faults=[{"on": "GET /instance-types", "do": "html", "times": 2},
                           {"on": "GET /ssh-keys", "do": "half"}])
        self.hark("up", "--type", "gpu_1x_a10")
        self.hark("down", "--all")
        self.begin(faults=[{"on": "GET /instance-types", "do": "html", "times": 99}])
        self.assertIn("the answer is not one of Lambda's API", self.hark("types", status=1))
        self.expect_end(0)

    def test_nothing_is_rented_to_see_the_cost(self):
        self.begin()
        self.assertIn("$3.29 per hour each", self.hark("up", "--type", "gpu_1x_h100_pcie", "--dry-run"))
        self.expect_end(0)
