"""A mock of Lambda's cloud API, version 1.10.0, for tests: fields, errors and limits as Lambda has them.

    mock.py FOLDER '{"regions": ..., "fates": [...], "faults": [...]}'

It prints its port. FOLDER/machines/ADDRESS/home is an instance's home while it is active, where the ssh of
bin/ runs commands. Requests with fields that Lambda does not know are refused, and listed as violations.
fates: of the instances in the order of their launches (see Instance). faults: rules that are used up, each
{"on": "POST /instance-operations/launch", "do": ACTION, "skip": N, "times": N}; ACTION is a status with a
code ("400 instance-operations/launch/insufficient-capacity"), "429", "429 SECONDS" (Retry-After), "drop" (the
connection, before anything is done), "lost" (done, and the answer dropped), "late" (lost, and the instance is
in no list for 30 seconds), "html", "half". cuda: the version that the drivers run (13.0). GET /mock/state, POST
/mock/capacity and /mock/fate are for the tests.
"""
import json
import os
import re
import signal
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEY = "secret_test_key"
START, SPEED = (float(word) for word in os.environ.get("HARK_LAMBDA_CLOCK", "0 1").split())
BOOT = 240
PRICES = {"gpu_1x_a10": (129, 1, "A10 (24 GB PCIe)"), "gpu_1x_h100_pcie": (329, 1, "H100 (80 GB PCIe)"),
          "gpu_1x_gh200": (229, 1, "GH200 (96 GB)"), "gpu_8x_a100": (1592, 8, "A100 (40 GB SXM4)"),
          "cpu_4x_general": (20, 0, "N/A")}
REGIONS = ["us-east-1", "us-west-1", "us-south-1", "europe-central-1"]
LAUNCH_FIELDS = {"region_name", "instance_type_name", "ssh_key_names", "name", "hostname", "file_system_names",
                 "file_system_mounts", "image", "user_data", "tags", "firewall_rulesets"}
lock = threading.RLock()


def now():
    return START + (time.time() - START) * SPEED


class Refused(Exception):
    def __init__(self, status, code, message="refused"):
        super().__init__(message)
        self.status, self.code = status, code


class Instance:
    """fate: good; unhealthy (for good); stuck (boots for ever); 802 (no kernel runs); 802-once; deaf (ssh);
    hang (becomes deaf SECONDS after it is active: "hang 300"), "preempt SECONDS", "vanish SECONDS";
    "lasting" (terminate is answered, and it runs on), "slow-end" (terminating for a minute)."""

    def __init__(self, cloud, request, fate):
        self.cloud, self.fate, self.began = cloud, fate.split(), now()
        self.id, self.request, self.status, self.ended = uuid.uuid4().hex, request, "booting", None
        cloud.addresses += 1
        self.ip = f"10.66.0.{cloud.addresses}"
        self.home = cloud.folder / "machines" / self.ip / "home"
        self.hidden_until = 0

    def update(self):
        kind, after = self.fate[0], float(self.fate[1]) if len(self.fate) > 1 else 0
        age = now() - self.began
        if self.status == "terminating" and now() > self.ended:
            self.status = "terminated"
        if self.status == "booting" and age > BOOT and kind != "stuck":
            self.status = "unhealthy" if kind == "unhealthy" else "active"
            if self.status == "active":
                self.home.parent.mkdir(parents=True)
                (self.home.parent / "gpu").write_text("802" if kind.startswith("802") else "ok")
                (self.home.parent / "cuda").write_text(self.cloud.cuda)
                if kind == "deaf":
                    (self.home.parent / "deaf").touch()
                self.home.mkdir()  # the last: ssh reaches a machine that has one
        if self.status == "active" and kind == "802-once" and age > BOOT + 60:
            (self.home.parent / "gpu").write_text("ok")
            self.fate = ["good"]  # written once: a file that is written again is empty for a moment
        if self.status == "active" and age > BOOT + after and kind in ("hang", "preempt", "vanish"):
            self.stop()
            if kind != "hang":
                self.status = "preempted" if kind == "preempt" else "terminated"
                self.cloud.log.append(f"{kind} {self.id}")

    def stop(self):
        """Its processes end at once, and ssh does not reach it."""
        if not self.home.exists():
            return
        (self.home.parent / "deaf").touch()
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"HOME={self.home}\0".encode() in environ.read_bytes():
                    os.kill(int(environ.parent.name), signal.SIGKILL)
            except (OSError, ValueError):
                pass

    def end(self):
        if self.fate[0] == "lasting" or self.status in ("terminating", "terminated"):
            return
        self.stop()
        self.status, self.ended = "terminating", now() + (60 if self.fate[0] == "slow-end" else 2)

    def view(self):
        kind = self.request["instance_type_name"]
        view = {"id": self.id, "status": self.status, "region": region(self.request["region_name"]),
                "ssh_key_names": self.request["ssh_key_names"], "file_system_names": [],
                "instance_type": instance_type(kind), "tags": self.request.get("tags", []),
                "firewall_rulesets": self.request.get("firewall_rulesets", []), "actions": {}}
        if "name" in self.request:
            view["name"] = self.request["name"]
        if self.status in ("active", "unhealthy", "terminating"):
            view["ip"] = self.ip
        return view


def region(name):
    return {"name": name, "description": name.title()}


def instance_type(name):
    cents, gpus, gpu = PRICES[name]
    return {"name": name, "description": f"{gpus}x {gpu}", "gpu_description": gpu, "price_cents_per_hour": cents,
            "specs": {"vcpus": 30, "memory_gib": 200, "storage_gib": 1400, "gpus": gpus}}


def need(condition, message, code="global/invalid-parameters"):
    if not condition:
        cloud.violations.append(message)
        raise Refused(400, code, message)


class Cloud:
    def __init__(self, folder, script):
        self.folder, self.log, self.violations = Path(folder), [], []
        self.instances, self.keys, self.rulesets, self.addresses, self.launches = [], [], [], 0, 0
        self.capacity = script.get("capacity", {name: ["us-east-1"] for name in PRICES})
        self.fates, self.faults = script.get("fates", []), script.get("faults", [])
        self.cuda = script.get("cuda", "13.0")  # what the driver runs
        self.filesystems = [{"id": "f1", "name": "models", "mount_point": "/lambda/nfs/models",
                             "region": region("us-east-1"), "is_in_use": False}]
        self.last, self.last_launch, self.too_fast = -1e9, -1e9, 0

    def update(self):
        for instance in self.instances:
            instance.update()

    def listed(self):
        return [one for one in self.instances if one.status != "terminated" and now() >= one.hidden_until]

    def pace(self, launch):
        if SPEED < 100:
            # The way from the program to here takes up to 100 ms more or less, real ones.
            late = now() - self.last < 1 - 0.1 * SPEED or (launch and now() - self.last_launch < 12 - 0.1 * SPEED)
            self.last = now()
            if launch and not late:
                self.last_launch = now()
            if late:
                self.too_fast += 1
                raise Refused(429, "", "slow down")

    def launch(self, body):
        need(set(body) <= LAUNCH_FIELDS, f"unknown fields {set(body) - LAUNCH_FIELDS}")
        need({"region_name", "instance_type_name", "ssh_key_names"} <= set(body), "a field is missing")
        need(body["ssh_key_names"] in [[key["name"]] for key in self.keys], "one registered ssh key is required")
        need(re.fullmatch(r".{1,64}", body.get("name", "x")), "name")
        need(body.get("image") == {"family": "lambda-stack-24-04"}, f"image {body.get('image')}")
        need(body["instance_type_name"] in PRICES and body["region_name"] in REGIONS, "type or region")
        for tag in body.get("tags", []):
            need(set(tag) == {"key", "value"} and re.fullmatch(r"[a-z][a-z0-9-:]+", tag["key"]) and
                 len(tag["key"]) <= 55 and len(tag["value"]) <= 128, "tag")
        for one in body.get("firewall_rulesets", []):
            need(any(one == {"id": rules["id"]} and rules["region"]["name"] == body["region_name"]
                     for rules in self.rulesets), "rule set")
        need(body["region_name"] == "us-south-1" or body.get("firewall_rulesets"), "no rule set")
        for name in body.get("file_system_names", []):
            need(any(disk["name"] == name and disk["region"]["name"] == body["region_name"]
                     for disk in self.filesystems), "file system",
                 "instance-operations/launch/file-system-in-wrong-region")
        need(KEY not in json.dumps(body), "the key is in the launch")
        if body["region_name"] not in self.capacity.get(body["instance_type_name"], []):
            raise Refused(400, "instance-operations/launch/insufficient-capacity", "Not enough capacity")
        self.launches += 1
        instance = Instance(self, body, self.fates.pop(0) if self.fates else "good")
        self.instances.append(instance)
        return {"instance_ids": [instance.id]}

    def find(self, identity):
        for instance in self.listed():
            if instance.id == identity:
                return instance
        raise Refused(404, "global/object-does-not-exist", "Instance does not exist")

    def answer(self, method, path, body):
        call = f"{method} {path}"
        if call == "GET /instance-types":
            return {name: {"instance_type": instance_type(name), "regions_with_capacity_available":
                           [region(place) for place in self.capacity.get(name, [])]} for name in PRICES}
        if call == "GET /instances":
            return [instance.view() for instance in self.listed()]
        if method == "GET" and path.startswith("/instances/"):
            return self.find(path.split("/")[2]).view()
        if call == "GET /ssh-keys":
            return self.keys
        if call == "POST /ssh-keys":
            need(set(body) == {"name", "public_key"} and len(body["name"]) <= 64, "ssh key")
            if any(key["name"] == body["name"] for key in self.keys):
                raise Refused(400, "global/duplicate", "exists")
            self.keys.append({"id": uuid.uuid4().hex, **body})
            return self.keys[-1]
        if call == "GET /file-systems":
            return self.filesystems
        if call == "GET /firewall-rulesets":
            return self.rulesets
        if call == "POST /firewall-rulesets":
            need(set(body) == {"name", "region", "rules"} and len(body["name"]) <= 64, "rule set")
            for rule in body["rules"]:
                need(set(rule) <= {"protocol", "port_range", "source_network", "description"}, "rule")
            self.rulesets.append({**body, "id": uuid.uuid4().hex, "region": region(body["region"]), "instance_ids": []})
            return self.rulesets[-1]
        if call == "POST /instance-operations/launch":
            return self.launch(body)
        if call == "POST /instance-operations/terminate":
            need(set(body) == {"instance_ids"}, "terminate")
            ended = [self.find(identity) for identity in body["instance_ids"]]
            for instance in ended:
                instance.end()
            return {"terminated_instances": [instance.view() for instance in ended]}
        need(False, f"no such call: {call}", "global/not-found")

    def fault(self, call):
        for rule in self.faults:
            if re.fullmatch(rule["on"], call) and rule.get("times", 1) > 0:
                if rule.get("skip", 0) > 0:
                    rule["skip"] -= 1
                    return ""
                rule["times"] = rule.get("times", 1) - 1
                return rule["do"]
        return ""

    def state(self):
        self.update()
        return {"running": [one.view() for one in self.instances if one.status != "terminated"],
                "launches": self.launches, "violations": self.violations, "log": self.log,
                "too_fast": self.too_fast}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def send(self, status, data, headers=()):
        text = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def drop(self):
        self.close_connection = True
        self.connection.close()

    def do(self, method):
        length = int(self.headers.get("Content-Length", 0))
        text = self.rfile.read(length)
        with lock:
            cloud.update()
            if self.path == "/mock/state":
                return self.send(200, cloud.state())
            if self.path == "/mock/capacity":
                cloud.capacity = json.loads(text)
                return self.send(200, {})
            if self.path == "/mock/fate":
                for instance in cloud.instances:
                    instance.fate = text.decode().split()
                return self.send(200, {})
            call = f"{method} {self.path}"
            cloud.log.append(call)
            fault = cloud.fault(call)
            if fault.startswith("429"):
                wait = fault[4:]
                return self.send(429, {"error": {"code": "", "message": "Too many requests"}},
                                 [("Retry-After", wait)] if wait else [])
            if fault == "drop":
                return self.drop()
            if fault == "html":
                return self.send(200, b"<html>Sign in</html>")
            if fault[:1] in "45" and fault:
                status, _, code = fault.partition(" ")
                return self.send(int(status), {"error": {"code": code, "message": "scripted"}} if code else b"oops")
            self.respond(method, text, fault)

    def respond(self, method, text, fault):
        try:
            if self.headers.get("Authorization") != f"Bearer {KEY}":
                raise Refused(401, "global/invalid-api-key", "API key was invalid, expired, or deleted.")
            cloud.pace(self.path.endswith("/launch"))
            data = {"data": cloud.answer(method, self.path, json.loads(text) if text else {})}
        except Refused as refused:
            return self.send(refused.status, {"error": {"code": refused.code, "message": str(refused)}})
        if fault in ("lost", "late"):
            if fault == "late":
                cloud.instances[-1].hidden_until = now() + 30
            return self.drop()
        if fault == "half":
            return self.send(200, json.dumps(data).encode()[:20])
        return self.send(200, data)

    def do_GET(self):
        self.do("GET")

    def do_POST(self):
        self.do("POST")


def keep_updating():
    while True:
        with lock:
            cloud.update()
        time.sleep(0.02)


if __name__ == "__main__":
    cloud = Cloud(sys.argv[1], json.loads(sys.argv[2]))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *arguments: None  # of connections that are dropped
    threading.Thread(target=keep_updating, daemon=True).start()
    print(server.server_address[1], flush=True)
    server.serve_forever()
