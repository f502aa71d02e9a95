"""The number of machines: the rule by itself, and runs that grow or do not."""
import os
import subprocess

from cloud import SOURCE, Story

RULE = r"""
cd "$0/pipelines" && . cloud/fleet.sh
least=1 most=4 desired=1 now=0 budget_cents="" spent=0 rate=129 dearest=129
running=1
while read -r unclaimed busy; do
    now=$((now + 60))
    [ -z "$broke" ] || budget_cents=20
    decide_machines "$running" "$unclaimed" "$busy"
    echo "$desired"
    running="$desired"
done
"""


class Scaling(Story):
    def rule(self, minutes, broke=""):
        """minutes: (unclaimed shards, busy share or "") each; the number of machines wished for in each."""
        text = "".join(f"{unclaimed} {busy}\n" for unclaimed, busy in minutes)
        said = subprocess.run(["bash", "-uc", RULE, SOURCE], input=text, text=True, check=True, capture_output=True,
                              env={**os.environ, "broke": broke})
        return [int(line) for line in said.stdout.split()]

    def test_the_rule_grows_slowly_and_not_beyond_the_most(self):
        wished = self.rule([(50, 95)] * 40)
        self.assertEqual(wished[:6], [1, 1, 1, 1, 2, 2])
        self.assertEqual(max(wished), 4)
        changes = [minute for minute in range(1, 40) if wished[minute] != wished[minute - 1]]
        self.assertTrue(all(later - sooner >= 5 for sooner, later in zip(changes, changes[1:])), changes)

    def test_the_rule_does_not_flutter(self):
        self.assertEqual(set(self.rule([(50, 90), (50, 90), (50, 30)] * 30)), {1})
        grown = self.rule([(50, 95)] * 8 + [(50, 10), (50, 60)] * 30)
        self.assertEqual(set(grown[8:]), {2})

    def test_the_rule_shrinks_after_ten_idle_minutes(self):
        wished = self.rule([(50, 95)] * 8 + [(50, 5)] * 15)
        self.assertEqual(wished[8:], [2] * 9 + [1] * 6)

    def test_the_rule_waits_for_machines_that_boot_and_for_shards(self):
        self.assertEqual(set(self.rule([(50, "")] * 30)), {1})
        self.assertEqual(set(self.rule([(0, 95)] * 30)), {1})

    def test_the_rule_keeps_to_the_budget(self):
        self.assertEqual(set(self.rule([(50, 95)] * 30, broke="yes")), {1})

    def run_with(self, busy):
        self.begin()
        (self.folder / "busy").write_text(busy)
        self.recordings(*[f"{i}/hat.wav" for i in range(16)])
        self.transcribe("--machines", "1..2", "--shard", "1", "--type", "gpu_1x_a10")
        self.expect_transcripts(16)

    def test_a_busy_run_gets_a_second_machine(self):
        self.run_with("95\n")
        self.expect_end(2)

    def test_an_idle_run_gets_none(self):
        self.run_with("30\n")
        self.expect_end(1)
