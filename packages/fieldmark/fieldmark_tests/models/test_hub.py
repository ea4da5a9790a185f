"""Models on the hub: the real client against a small server that speaks the hub's protocol."""

import base64
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.models.hub import pull

COMMIT = "c" * 40


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as uploads and downloads of small files need."""

    files: dict[str, bytes]

    def reply(self, body=b"", status=200, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "X-Repo-Commit": COMMIT, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_POST(self):
        body, here = self.body(), f"http://{self.headers['Host']}/me/mine"
        if self.path.endswith("/create"):
            answer = {"url": here, "name": "me/mine", "id": "me/mine"}
        elif "/preupload/" in self.path:
            wanted = json.loads(body)["files"]
            answer = {"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in wanted]}
        elif "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            answer = {"success": True, "commitOid": COMMIT, "commitUrl": f"{here}/commit/{COMMIT}"}
        else:
            answer = {}
        self.reply(json.dumps(answer).encode(), Content_Type="application/json")

    def do_GET(self):
        if self.path.startswith("/api/models/me/mine"):
            siblings = [{"rfilename": name} for name in self.files]
            facts = {"id": "me/mine", "sha": COMMIT, "siblings": siblings, "private": False, "tags": []}
            if "/tree/" in self.path:
                facts = [{"type": "file", "path": n, "size": len(d), "oid": "0" * 40} for n, d in self.files.items()]
            self.reply(json.dumps(facts).encode(), Content_Type="application/json")
        elif "/resolve/" in self.path:
            data = self.files[self.path.partition("/resolve/")[2].partition("/")[2].partition("?")[0]]
            self.reply(data, ETag=f'"{abs(hash(data))}"')
        else:
            self.reply(b"{}", 404)

    do_HEAD = do_GET

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub(tmp_path):
    """A hub of our own; yields its files and the environment in which a client uses it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OwnHub", (Hub,), {"files": {}}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": "hf_test"}
    environment |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    yield server.RequestHandlerClass.files, environment
    server.shutdown()


def models(*arguments, environment):
    command = [sys.executable, "-c", "from fieldmark.cli.main import main; main()", "models", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_a_model_goes_to_the_hub_and_comes_back(hub, make_release, tmp_path):
    files, environment = hub
    fieldmark.fit("folder", make_release(), "frequent", tmp_path / "run")
    pushed = models("push", tmp_path / "run", "me/mine", "--license", "cc-by-nc-4.0", environment=environment)
    assert pushed.returncode == 0, pushed.stderr
    assert set(files) >= {"README.md", "model.json", "weights.safetensors"}
    assert files["README.md"].startswith(b"---\nlicense: cc-by-nc-4.0\n")
    pulled = models("pull", "hf://me/mine", "--out", tmp_path / "back", environment=environment)
    assert pulled.returncode == 0, pulled.stderr
    back = fieldmark.load_model(tmp_path / "back")
    assert back.license == "cc-by-nc-4.0" and back.labels == fieldmark.load_model(tmp_path / "run").labels
    missing = models("pull", "hf://me/other", "--out", tmp_path / "other", environment=environment)
    assert missing.returncode == 1 and "hf://me/other: found no model" in missing.stderr
    assert not (tmp_path / "other").exists()


def test_an_address_without_an_owner_is_misuse():
    with pytest.raises(MisuseError, match="hf://owner/name"):
        pull("hf://mine")
