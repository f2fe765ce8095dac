"""A PostgreSQL server with samesum's extension in a temporary folder, and sessions with it; for the experiment
`databases` and for tests."""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]


class Absent(Exception):
    """There is no server to start. The message says what to install."""


def config(pg_config, name):
    """What pg_config says, such as the folder "bindir"."""
    return subprocess.run([pg_config, f"--{name}"], check=True, capture_output=True, text=True).stdout.strip()


class Server:
    """A server in a temporary folder: a copy of the programs, links to all files beside them, and the extension, which
    make builds in build/postgresql, unless `states` is libsamesum_states.a beside one that is built. Raises Absent."""

    def __init__(self, pg_config="pg_config", make="make", states=None):
        for program in pg_config, make:
            if not shutil.which(program):
                raise Absent(f"there is no {program} (apt-get install make postgresql postgresql-server-dev-all)")
        programs = config(pg_config, "bindir")
        for name in "postgres", "initdb", "psql":
            if not os.access(f"{programs}/{name}", os.X_OK):
                raise Absent(f"there is no {programs}/{name} (apt-get install postgresql)")
        if not os.path.exists(f"{config(pg_config, 'includedir-server')}/postgres.h"):
            raise Absent("there are no headers of a server (apt-get install postgresql-server-dev-all)")
        self.process, self.psql = None, f"{programs}/psql"
        self.version = config(pg_config, "version").split()[1]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="samesum-pg-"))
        try:
            self.install(pg_config, make, states)
            self.start(self.installed(programs))
        except BaseException:
            self.stop()
            raise

    def install(self, pg_config, make, states):
        programs = config(pg_config, "bindir")
        self.installed(programs).mkdir(parents=True)
        for name in "postgres", "initdb":  # which look for all other files beside themselves
            shutil.copy(f"{programs}/{name}", self.installed(programs))
        built = pathlib.Path(states).parent if states else ROOT / "build/postgresql/extension"
        built.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([make, "-s", "-f", ROOT / "lib/sql/postgresql/Makefile", f"PG_CONFIG={pg_config}",
                               *([f"SAMESUM_STATES={states}"] if states else []), f"DESTDIR={self.folder}", "install"],
                              cwd=built, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(f"the extension cannot be built: {done.stdout}")
        shared = config(pg_config, "sharedir")
        for folder in config(pg_config, "pkglibdir"), f"{shared}/extension", shared:
            for entry in os.scandir(folder):
                if not (self.installed(folder) / entry.name).exists():
                    (self.installed(folder) / entry.name).symlink_to(entry.path)

    def start(self, programs):
        self.user = {}  # a server refuses to run as root
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self.data = self.folder / "data"
        subprocess.run([programs / "initdb", "-D", self.data, "-U", "tester", "-A", "trust", "-E", "UTF8",
                        "--locale=C", "--no-sync"],
                       check=True, cwd=self.folder, stdout=subprocess.DEVNULL, **self.user)
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [programs / "postgres", "-D", self.data, "-k", self.folder, "-F", "-c", "listen_addresses=",
                 "-c", "dynamic_shared_memory_type=mmap", "-c", "max_worker_processes=16"],
                cwd=self.folder, stdout=log, stderr=log, **self.user)
        status = self.data / "postmaster.pid"
        deadline = time.monotonic() + 60
        while not (status.exists() and status.read_text().rstrip().endswith("ready")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server does not start: {self.log.read_text()}")
            time.sleep(0.02)

    def installed(self, path):
        """The place in the temporary folder of a file that is installed at an absolute path."""
        return self.folder / path.lstrip("/")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(2)  # a fast shutdown
            self.process.wait()
        shutil.rmtree(self.folder)


class Failure(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


class Session:
    """A psql that stays connected."""

    def __init__(self, server):
        self.process = subprocess.Popen(
            [server.psql, "-XqAt", "-F", "\t", "-P", "null=NULL", "-h", server.folder, "-U", "tester", "postgres"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PGOPTIONS": "-c client_min_messages=error"})
        self.pid = int(self.run("select pg_backend_pid()")[0][0])

    def send(self, sql):
        self.process.stdin.write(f"{sql}\n;\n\\echo -end- :SQLSTATE\n")
        self.process.stdin.flush()

    def receive(self):
        """The rows of the statement that was sent last; raises Failure if it failed, or the connection is lost."""
        lines = []
        while not lines or not lines[-1].startswith("-end- "):
            line = self.process.stdout.readline()
            if not line:
                raise Failure("lost", "".join(lines))
            lines.append(line.rstrip("\n"))
        code = lines.pop().split()[1]
        if code != "00000":
            raise Failure(code, "\n".join(lines))
        return [line.split("\t") for line in lines]

    def run(self, sql):
        self.send(sql)
        return self.receive()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
