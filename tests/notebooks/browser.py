"""Controls a headless Chromium with the DevTools protocol over pipes: JSON messages, each terminated by a NUL."""

import base64
import collections
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# No network: host names are not resolved.
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe", "--force-color-profile=srgb"]
PATIENCE = 120  # seconds, for one answer


def find():
    """Path of a Chromium that runs, or None. Snap packages are skipped because they cannot read other files."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path and not os.path.realpath(path).startswith(("/snap", "/usr/bin/snap")):
            if subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
                return path
    return None


class Browser:
    """A browser with one page."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        down, up = os.pipe(), os.pipe()
        # Chromium expects its pipes at descriptors 3 and 4, so these must be free.
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (down[0], up[1])]

        def place():
            os.dup2(theirs[0], 3)
            os.dup2(theirs[1], 4)

        self.process = subprocess.Popen([program, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"],
                                        preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (down[0], up[1], *theirs):
            os.close(fd)
        self.write, self.read = down[1], up[0]
        self.rest, self.messages, self.count, self.events, self.session = b"", collections.deque(), 0, [], None
        targets = self("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def close(self):
        try:
            self.session = None
            self("Browser.close")
            self.process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.write)
        os.close(self.read)
        self.profile.cleanup()

    def __call__(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        while True:
            answer = self.receive(method)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def receive(self, waiting_for):
        """The next message. Events are kept in `events`."""
        end = time.monotonic() + PATIENCE
        while not self.messages:
            if not select.select([self.read], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"no answer to {waiting_for} in {PATIENCE} s")
            data = os.read(self.read, 1 << 20)
            if not data:
                raise OSError(f"the browser ended before it answered {waiting_for}")
            *complete, self.rest = (self.rest + data).split(b"\0")
            self.messages.extend(map(json.loads, complete))
        message = self.messages.popleft()
        if "method" in message:
            self.events.append(message)
        return message

    def load(self, url):
        self.events.clear()
        self("Page.navigate", url=url)
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.receive(f"loading {url}")

    def run(self, script):
        """Value of a JavaScript expression; if that is a promise, its result."""
        answer = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def complaints(self):
        """Yields errors and warnings of scripts, and requests for anything other than the page."""
        for e in self.events:
            p = e["params"]
            if e["method"] == "Runtime.exceptionThrown":
                details = p["exceptionDetails"]
                yield details.get("exception", {}).get("description", details["text"])
            elif e["method"] == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
                yield " ".join(str(a.get("value", a.get("description"))) for a in p["args"])
            elif e["method"] == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                yield p["entry"]["text"]
            elif (e["method"] == "Network.requestWillBeSent"
                  and not p["request"]["url"].startswith(("file:", "data:", "blob:"))):
                yield f"requested {p['request']['url']}"

    def size(self, width, height):
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
             mobile=width < 600)

    def prefer(self, scheme):
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                 **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))

    def picture(self, path, height=None):
        """Writes a screenshot of the window, or of the first `height` pixels of the page."""
        more = {}
        if height:
            width = self.run("innerWidth")
            more = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": width, "height": height,
                                                            "scale": 1}}
        path.write_bytes(base64.b64decode(self("Page.captureScreenshot", format="png", **more)["data"]))

    def print(self, path):
        path.write_bytes(base64.b64decode(self("Page.printToPDF", printBackground=True)["data"]))
