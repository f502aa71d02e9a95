"""The files for other programs, docs/cloud: their syntax, and the names in them."""
import re
import subprocess
import unittest

import hcl2
import yaml

from cloud import SOURCE

# Of a task of SkyPilot: https://docs.skypilot.co/en/latest/reference/yaml-spec.html
TASK_KEYS = {"name", "num_nodes", "resources", "envs", "file_mounts", "setup", "run"}


class Documents(unittest.TestCase):
    def test_the_task_of_skypilot(self):
        task = yaml.safe_load((SOURCE / "docs/cloud/skypilot.yaml").read_text())
        self.assertEqual(set(task) - TASK_KEYS, set())
        self.assertEqual(task["resources"]["infra"], "lambda")
        self.assertTrue(task["resources"]["autostop"]["down"])
        subprocess.run(["bash", "-n", "-c", task["run"]], check=True)
        # Each variable of the script is one of the task.
        self.assertEqual(set(re.findall(r"\$([A-Z]\w*)", task["run"])), set(task["envs"]))

    def test_terraforms_file(self):
        text = (SOURCE / "docs/cloud/terraform/main.tf").read_text()
        file = hcl2.loads(text)
        variables = {name.strip('"') for block in file["variable"] for name in block}
        self.assertEqual(variables, {"instance_type", "region", "ssh_key_name"})
        self.assertEqual(set(re.findall(r"\bvar\.(\w+)", text)), variables)
        with self.assertRaises(Exception):
            hcl2.loads(text.replace("}", "", 1))
