"""An executor of a pool of bellows that runs functions of Python. A pool starts it; it needs the standard library only, from Python 3.8 on.

A task names a function as MODULE:FUNCTION. The module is looked for in the folder that the task names, which is the working directory too,
and then as usual. It stays loaded for later tasks, also of other applications, until one of the files of the folder has changed. The
function gets the arguments, which are JSON, as one value, and what it returns becomes JSON. One with the attribute bellows_raw = True gets
and returns bytes.

An application that starts its own tasks attaches this executor to one of its stages. The function of the stage is then called with two values:
what the application has enrolled with, and an Attached.

There are two processes. This one runs tasks. The other, a small one which it forks at the beginning, keeps the lease while a task runs,
reads what tasks print, and ends with this one.
"""

import atexit
import ctypes
import fcntl
import http.client
import importlib
import importlib.util
import json
import mmap
import os
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time
import traceback

MOST_RESULT = 32 << 20  # bytes
MOST_OUTPUT = 64 << 10  # bytes of what a task prints that are kept: the end of it
MOST_ERROR = 64 << 10  # characters
LEAVING = 5  # seconds for what tasks have registered by atexit
RETURNING = 1  # seconds for a function to return whose executor was given back, before Cancelled is raised in it
AWAY = 60  # seconds for which the daemon may be away
PAUSES = (0.02, 1.0)  # seconds between two attempts to reach it: the first, the longest
STATE_VARIABLE = "BELLOWS_WORKER_STATE"  # for the same process after an exec: the file with its state
ENDED = "the process that keeps the lease has ended"

LIBC = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """The daemon has answered with an error."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Cancelled(BaseException):
    """No application waits for the result of the running task any more, or it has given this executor back."""


class Interrupted(BaseException):
    """No answer is waited for any more."""


class Connection(http.client.HTTPConnection):
    """A connection to the socket of the daemon."""

    def __init__(self, path, timeout):
        super().__init__("bellows", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Link:
    """Sends messages to a pool."""

    def __init__(self, timeout):
        self.connection = Connection(os.environ["BELLOWS_SOCKET"], timeout)
        self.interrupted = False
        self.base = "/v1/pools/" + os.environ["BELLOWS_POOL"]

    def post(self, path, head, *payload):
        """Sends a message, and returns the head and the payload of the answer."""
        body = b"".join((json.dumps(head).encode(), b"\n") + payload)
        if self.interrupted:
            raise Interrupted
        try:
            self.connection.request("POST", self.base + path, body, {"Content-Type": "application/vnd.bellows.message"})
            answer = self.connection.getresponse()
            message = answer.read()
        except BaseException:
            self.connection.close()
            if self.interrupted:
                raise Interrupted from None
            raise
        if answer.status != 200:
            text = message[:4096].decode(errors="replace").strip()
            if answer.headers.get("Content-Type") == "application/problem+json":
                text = json.loads(message).get("detail", text)
            raise Refused(answer.status, text)
        at = message.find(b"\n")
        if at < 0:
            at = len(message)
        return json.loads(message[:at]), message[at + 1 :]

    def interrupt(self, thread):
        """Ends a thread that sends messages and waits for answers."""
        self.interrupted = True
        while thread.is_alive():
            try:
                self.connection.sock.shutdown(socket.SHUT_RDWR)
            except (AttributeError, OSError):  # It is not connected, which may change before the thread sees that it was interrupted.
                pass
            thread.join(0.02)
        self.interrupted = False
        self.connection.close()


def patiently(attempt):
    """Tries again what fails because the daemon is away. What it answers, even an error, is final, and so is that its socket is not open."""
    pause, failed = PAUSES[0], None
    while True:
        try:
            return attempt()
        except PermissionError:
            raise
        except (Refused, OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, Refused) and error.status < 500 or failed is not None and time.monotonic() - failed > AWAY:
                raise
        # The first failure may come late: of a message that waited for its answer, or after a time in which the machine stood still.
        failed = time.monotonic() if failed is None else failed
        time.sleep(pause)
        pause = min(2 * pause, PAUSES[1])


def resident(pid):
    """Returns the resident memory of a process in bytes, 0 if it is unknown."""
    try:
        with open("/proc/%s/statm" % pid) as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError):
        return 0


class State:
    """What the two processes share: a file in memory. It survives an exec."""

    # Each counter has one writer. The text is JSON, of the process that runs tasks.
    READS, CANCELLED, LEASES, WRITES, SIZE, TEXT = 0, 8, 16, 24, 32, 40
    LENGTH = 64 << 10

    def __init__(self, fd=None):
        if fd is None:
            fd = os.memfd_create("bellows")
            os.ftruncate(fd, self.LENGTH)
        self.fd = fd
        self.map = mmap.mmap(fd, self.LENGTH)

    def get(self, at):
        return struct.unpack_from("<q", self.map, at)[0]

    def set(self, at, value):
        struct.pack_into("<q", self.map, at, value)

    def write(self, text):
        """Replaces the text. While that is going on, the number of writes is odd."""
        data = json.dumps(text).encode()
        odd = self.get(self.WRITES) | 1  # It is odd already if a signal has ended the last call.
        self.set(self.WRITES, odd)
        self.map[self.TEXT : self.TEXT + len(data)] = data
        self.set(self.SIZE, len(data))
        self.set(self.WRITES, odd + 1)

    def read(self):
        """Returns the text, None while it is being replaced."""
        before = self.get(self.WRITES)
        data = self.map[self.TEXT : self.TEXT + self.get(self.SIZE)]
        if before % 2 or before != self.get(self.WRITES):
            return None
        try:
            return json.loads(data)
        except ValueError:
            return None


class Companion:
    """The other process: it keeps the lease while a task runs, and reads what tasks print."""

    def __init__(self, state, control, output, number, secret):
        self.state, self.control, self.output, self.number, self.secret = state, control, output, number, secret
        self.link = Link(timeout=5)
        self.parent = os.getppid()
        self.end = bytearray()  # of what was printed
        self.truncated = False
        self.lease = None  # that this process has got
        self.beating = threading.Lock()

    def run(self):
        threading.Thread(target=self.beats, daemon=True).start()
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.output, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self.output:
                    self.read(1 << 16)
                elif not self.answer():
                    return

    def read(self, most):
        self.state.set(State.READS, self.state.get(State.READS) + 1)  # before it, so that a reader of the counter misses nothing
        try:
            data = os.read(self.output, most)
        except BlockingIOError:  # It was read for an answer meanwhile.
            return 0
        self.end += data
        over = len(self.end) - MOST_OUTPUT
        if over > 0:
            del self.end[:over]
            self.truncated = True
        return len(data)

    def answer(self):
        """Tells the other process the newest lease, and the end of what was printed before it asked."""
        if not self.control.recv(16):
            return False
        waiting = struct.unpack("i", fcntl.ioctl(self.output, termios.FIONREAD, b"\0" * 4))[0]
        while waiting > 0:
            waiting -= self.read(min(waiting, 1 << 16)) or waiting
        with self.beating:
            head = {"lease": self.lease, "leases": self.state.get(State.LEASES), "reads": self.state.get(State.READS), "truncated": self.truncated}
        self.control.send(json.dumps(head).encode() + b"\n" + bytes(self.end))
        self.end.clear()
        self.truncated = False
        return True

    def beats(self):
        pause = 1.0
        while True:
            time.sleep(pause)
            with self.beating:
                pause = self.beat()

    def beat(self):
        """Keeps the lease, if a task runs. It returns the seconds until the next time."""
        told = self.state.read()
        if not told or not told.get("length_ms"):
            return 0.1
        pause = max(told["length_ms"] / 4000, 0.01)
        if not told["work"] or os.getppid() != self.parent:
            return pause
        lease = told["lease"]
        if told["leases"] != self.state.get(State.LEASES):  # The other process does not know the newest lease yet.
            lease = self.lease["lease"]
        try:
            beat = {"lease": lease, "work": told["work"], "memory_bytes": resident(self.parent)}
            answer, _ = self.link.post("/executors/%d/beat" % self.number, beat)
            if answer.get("cancel"):
                self.cancel(told["work"])
        except Refused as refused:
            if refused.status != 410:
                return min(pause, 1)
            self.register(told)
        except (OSError, http.client.HTTPException, ValueError):
            return min(pause, 0.5)  # The daemon is away: a new one does not wait for long.
        return pause

    def register(self, told):
        """Registers the other process, which runs a task that a new daemon does not know and so would run again."""
        r = {"executor": self.number, "secret": self.secret, "language": "python", "pid": self.parent, "attaches": True, "running": told["held"]}
        try:
            lease, _ = self.link.post("/executors", r)
        except (Refused, OSError, http.client.HTTPException, ValueError):
            return  # The other process finds the same when its task has ended.
        self.lease = lease
        self.state.set(State.LEASES, self.state.get(State.LEASES) + 1)

    def cancel(self, work):
        if self.state.get(State.CANCELLED) != work:
            self.state.set(State.CANCELLED, work)
            os.kill(self.parent, signal.SIGUSR1)


def start_companion(state, number, secret):
    """Forks the other process. It returns the socket to it, and the pipe to which tasks print."""
    parent = os.getpid()
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    read, write = os.pipe()
    os.set_blocking(read, False)
    if os.fork() > 0:
        its.close()
        os.close(read)
        return mine, write
    try:
        LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the process that runs tasks
        if os.getppid() == parent:
            LIBC.prctl(15, b"bellows-beats")  # PR_SET_NAME
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            mine.close()
            os.close(write)
            Companion(state, its, read, number, secret).run()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


class Modules:
    """The modules of the folders that tasks name. Those of one folder at a time are known by their names."""

    MOST = 16  # folders whose modules stay loaded

    def __init__(self):
        self.start = self.path = os.getcwd()
        self.usual = sys.path[1:]  # without the folder of this file
        self.others = [os.path.join(os.path.abspath(p), "") for p in self.usual + [sys.prefix] if p]
        self.away = {}  # by folder: its modules, loaded and sys.path, while another folder is used
        self.loaded = {}  # by name, the modules of the folder: the file of each, and what it was when it was loaded
        self.known = 0  # how many modules there were when loaded was made
        sys.path[:] = [self.path] + self.usual

    def enter(self, path):
        """Makes a folder the one in which modules are looked for first."""
        path = os.path.join(self.start, path)
        os.chdir(path)
        if path != self.path:
            self.note()
            modules = {name: sys.modules.pop(name) for name in self.loaded if name in sys.modules}
            self.away[self.path] = modules, self.loaded, sys.path[:]
            modules, self.loaded, sys.path[:] = self.away.pop(path, ({}, {}, [path] + self.usual))
            sys.modules.update(modules)
            while len(self.away) > self.MOST:
                del self.away[next(iter(self.away))]
            self.path, self.known = path, 0
            importlib.invalidate_caches()
        self.forget_changed()

    def forget_changed(self):
        """Forgets all modules of the folder if one has changed: others may have imported names of it."""
        if all(signature(file) == then for file, then in self.loaded.values()):
            return
        for name, (file, _) in self.loaded.items():
            sys.modules.pop(name, None)
            try:
                # Its compiled form counts as new if the file was changed within a second.
                os.unlink(importlib.util.cache_from_source(file))
            except (OSError, NotImplementedError):
                pass
        self.loaded, self.known = {}, 0
        importlib.invalidate_caches()

    def note(self):
        """Notes the modules of the folder that have been loaded."""
        if len(sys.modules) == self.known:
            return
        self.known = len(sys.modules)
        below = os.path.join(self.path, "")
        others = tuple(p for p in self.others if p != below and p.startswith(below))
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file.startswith(below) and file.endswith(".py") and not file.startswith(others) and name not in self.loaded and name != "__main__":
                self.loaded[name] = file, signature(file)

    def find(self, function):
        """Returns a function by MODULE:FUNCTION."""
        module, _, name = function.partition(":")
        if not module or not name:
            raise ValueError("function %r: must be MODULE:FUNCTION" % function)
        __import__(module)  # whose stack traces have no lines of importlib
        found = sys.modules[module]
        for part in name.split("."):
            found = getattr(found, part)
        return found


def signature(file):
    """Returns what changes when a file changes."""
    try:
        s = os.stat(file)
        return s.st_mtime_ns, s.st_size
    except OSError:
        return None


def plain(value):
    """Returns what JSON can hold of arrays and their numbers, and of dates and times."""
    for method in ("tolist", "isoformat"):
        if hasattr(value, method):
            return getattr(value, method)()
    raise TypeError("it has a %s" % type(value).__name__)


def value_for(function, arguments):
    """Returns the value with which a function is called."""
    if getattr(function, "bellows_raw", False):
        return arguments
    try:
        return json.loads(arguments) if arguments else None
    except ValueError as error:
        raise ValueError("the input is no JSON: %s; write bellows_raw = True at a function that takes bytes" % error) from None


def call(function, arguments):
    """Calls a function with the arguments of a task, and returns the bytes of its result."""
    result = function(value_for(function, arguments))
    if getattr(function, "bellows_raw", False):
        if not isinstance(result, (bytes, bytearray, memoryview)):
            raise TypeError("a function with bellows_raw must return bytes, not %s" % type(result).__name__)
        result = bytes(result)
    else:
        try:
            text = json.dumps(result, default=plain)
            if "NaN" in text or "Infinity" in text:  # which are no JSON
                text = json.dumps(json.loads(text, parse_constant=lambda name: None))
            result = text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            text = "the result cannot be JSON: %s; return something else, or bytes from a function with bellows_raw = True" % error
            raise TypeError(text) from None
    if len(result) > MOST_RESULT:
        raise ValueError("the result has %d bytes: at most %d" % (len(result), MOST_RESULT))
    return result


def explain(error):
    """Returns the stack trace of an error, without the lines of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except BaseException as another:  # such as one of its __str__
        text = "%s, whose text cannot be had: %s" % (type(error).__name__, type(another).__name__)
    return text[-MOST_ERROR:].strip()


class Attached:
    """What a function knows that serves an application which starts its own tasks.

    The function serves the application until the executor is to be given back, and returns when the tasks that run there have ended. What it
    returns is not kept, and an exception says that the executor could not serve the application. If the application has given the executor
    back, and the function does not return within a second, Cancelled is raised in it.
    """

    def __init__(self, work, kept):
        self.attachment = work["work"]  # its number, which the application knows, too
        self.executor = int(os.environ["BELLOWS_EXECUTOR"])
        self.stage = work["task"]["stage"]  # of the application, from 0
        self.key, self.name = work["task"]["key"], work.get("name", "")  # of the application
        self.kept = kept  # a dictionary for what takes long to make: the next attachment to the same application finds it
        self.released = threading.Event()  # set when the executor is to be given back
        self._returned = threading.Event()  # set when the function has returned
        self._reader, self._writer = os.pipe()

    def fileno(self):
        """Returns a descriptor that becomes readable when the executor is to be given back: for select, poll and event loops."""
        return self._reader

    def _release(self):
        if not self.released.is_set():
            self.released.set()
            os.write(self._writer, b"!")  # To close it would not do: processes that the function has forked have it, too.

    def _close(self):
        os.close(self._reader)
        os.close(self._writer)


class Worker:
    """The process that runs tasks."""

    def __init__(self):
        self.environment = dict(os.environ)
        self.environment.pop(STATE_VARIABLE, None)
        self.number = int(os.environ["BELLOWS_EXECUTOR"])
        with open(os.environ["BELLOWS_EXECUTOR_SECRET_FILE"]) as file:
            self.secret = file.read().strip()
        self.pid = os.getpid()
        self.lease, self.length, self.held, self.work = None, 0, None, 0
        self.leases = self.reads = 0  # counters of the other process, as they were when it answered last
        self.served = None  # the key of the application whose task ran last
        self.kept = {}  # by the keys of applications that start their own tasks: what functions keep for the next attachment
        self.back = False  # The application has given back this executor, which serves it.
        state = os.environ.pop(STATE_VARIABLE, "")
        if state:
            self.resume(int(state))
        else:
            self.state = State()
            self.before = os.dup(2)  # where this process printed before it diverted its output
            self.control, self.output = start_companion(self.state, self.number, self.secret)
        self.link = Link(timeout=60)
        self.modules = Modules()
        self.divert()

    def resume(self, fd):
        """Takes over from what this process was before an exec."""
        self.state = State(fd)
        told = self.state.read()
        self.lease, self.length, self.leases, self.reads = told["lease"], told["length_ms"], told["leases"], told["reads"]
        self.before, self.output = told["before"], told["output"]
        self.control = socket.socket(fileno=told["control"])
        for file in (fd, self.before, self.output, told["control"]):
            os.set_inheritable(file, False)

    def divert(self):
        """Makes this process, and those that it starts, print to the other one."""
        os.dup2(self.output, 1)
        os.dup2(self.output, 2)
        for name in ("stdout", "stderr"):
            stream = getattr(sys, "__%s__" % name)
            if stream is None or stream.closed:
                stream = open(1 if name == "stdout" else 2, "w", buffering=1, closefd=False, errors="backslashreplace")
                setattr(sys, "__%s__" % name, stream)
            setattr(sys, name, stream)

    def run(self):
        done, payload = None, ()
        while True:
            work, arguments = self.next(done, payload)
            done, payload, self.held = None, (), None
            while work["do"] == "attach":
                done, work, arguments = self.attach(work, arguments)
            if work["do"] == "end":
                return
            if work["do"] == "run":
                done, payload = self.serve(work, arguments)
            elif work["do"] == "forget":
                self.kept.pop(work["task"]["key"], None)

    def next(self, done=None, payload=(), attached=None):
        """Asks for what is to be done, and returns that with its arguments. It reports what was done, and says what application is served."""
        while True:
            if self.lease is None:
                self.register()
            message = {"lease": self.lease, "memory_bytes": resident("self"), "keeps": [key for key, kept in self.kept.items() if kept]}
            if done is not None:
                message["done"] = done
            if attached is not None:
                message.update(attached=attached.attachment, released=attached.released.is_set())
            try:
                return patiently(lambda: self.link.post("/executors/%d/next" % self.number, message, *payload))
            except Refused as refused:
                if refused.status != 410:
                    raise
            self.lost()

    def register(self):
        r = {"executor": self.number, "secret": self.secret, "language": "python", "pid": self.pid, "attaches": True}
        if self.held is not None:
            r["running"] = self.held
        lease, _ = patiently(lambda: self.link.post("/executors", r))
        self.lease, self.length = lease["lease"], lease["length_ms"]
        self.share()

    def lost(self):
        """Takes the lease that the other process has got, if that is another one; otherwise this process must register."""
        old = self.lease
        printed, _ = self.ask()
        self.log(printed)
        if self.lease == old:
            self.lease = None

    def share(self):
        """Lets the other process know what this one does."""
        self.state.write({"lease": self.lease, "length_ms": self.length, "work": 0 if self.back else self.work, "held": self.held, "leases": self.leases, "reads": self.reads,
                          "before": self.before, "output": self.output, "control": self.control.fileno()})

    def log(self, printed):
        """Prints what belongs to no task where this process printed before it diverted its output."""
        while printed:
            printed = printed[os.write(self.before, printed) :]

    def ask(self):
        """Returns what was printed, and whether that is only the end of it."""
        self.control.send(b"?")
        head, _, printed = self.control.recv(1 << 18).partition(b"\n")
        if not head:
            raise OSError(ENDED)
        told = json.loads(head)
        if told["leases"] != self.leases:
            self.lease, self.length = told["lease"]["lease"], told["lease"]["length_ms"]
        self.leases, self.reads = told["leases"], told["reads"]
        return printed, told["truncated"]

    def printed(self):
        """Returns what the task has printed. Mostly that is nothing, and the other process is not asked. If that has ended, what was printed is
        lost, and the task may have failed because it could not print: then it is not reported, and runs again elsewhere."""
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass
        LIBC.fflush(None)
        poll = select.poll()
        poll.register(self.control, 0)  # POLLHUP is always told
        if poll.poll(0):
            raise OSError(ENDED)
        waiting = struct.unpack("i", fcntl.ioctl(self.output, termios.FIONREAD, b"\0" * 4))[0]
        if waiting == 0 and self.state.get(State.READS) == self.reads and self.state.get(State.LEASES) == self.leases:
            return b"", False
        return self.ask()

    def prepare(self, work):
        """Makes this process ready for a task or an attachment."""
        if work.get("fresh") and self.served not in (None, work["task"]["key"]):
            self.renew()
        self.served, self.held, self.back = work["task"]["key"], work["task"], False
        self.divert()
        signal.signal(signal.SIGUSR1, self.cancelled)

    def begin(self, work):
        """Lets the other process keep the lease. From here on a task or an attachment can be cancelled."""
        self.work = work["work"]
        self.share()

    def find(self, work):
        """Returns the function of a task or an attachment."""
        self.modules.enter(work.get("path", ""))
        return self.modules.find(work.get("function", ""))

    def leave(self):
        """Notes what a function has imported. It ends a process that the function has forked and that has returned from it, too."""
        if os.getpid() != self.pid:
            os._exit(1)
        self.modules.note()

    def serve(self, work, arguments):
        """Runs a task, and returns the report of it with its payload."""
        self.prepare(work)
        error, result = None, b""
        began = time.monotonic()
        try:
            try:
                self.begin(work)
                function = self.find(work)
                began = time.monotonic()
                result = call(function, arguments)
            finally:
                self.work = 0  # From here on the task cannot be cancelled.
        except BaseException as e:  # such as SystemExit
            error = explain(e)
        seconds = time.monotonic() - began
        self.leave()
        output, truncated = self.printed()
        self.share()
        report = {"work": work["work"], "seconds": seconds, "size": len(result), "output_size": len(output), "output_truncated": truncated}
        if error is not None:
            report.update(failed=True, error=error)
        return report, (result, output)

    def attach(self, work, arguments):
        """Serves an application that starts its own tasks, until the application has given this executor back, or the function returns. It returns
        the report of that, None if the application knows already, and what is to be done next, with its arguments."""
        self.prepare(work)
        attached = Attached(work, self.kept.setdefault(work["task"]["key"], {}))
        came = []  # what is to be done next with its arguments, or None and why that cannot be known
        watching = threading.Thread(target=self.watch, args=(attached, came), daemon=True)
        report = {"work": work["work"]}
        began = time.monotonic()
        try:
            try:
                self.begin(work)
                watching.start()
                function = self.find(work)
                function(value_for(function, arguments), attached)
            finally:
                self.work = 0
        except Cancelled:
            pass
        except BaseException as e:
            report.update(failed=True, error=explain(e))
        report["seconds"] = time.monotonic() - began
        self.leave()
        attached._returned.set()
        self.link.interrupt(watching)
        attached._close()
        if not attached.kept:
            self.kept.pop(attached.key, None)
        output, _ = self.printed()
        self.log(output)
        self.share()
        if not came:
            return report, {"do": "wait"}, b""
        following, arguments = came[0]
        if following is None:
            raise arguments
        self.held = None
        return report if following["do"] == "park" else None, following, arguments

    def watch(self, attached, came):
        """Asks for what is to be done while a function serves an application, until that is something else."""
        try:
            while not came:
                work, arguments = self.next(attached=attached)
                if work["do"] == "release":
                    attached._release()
                elif work["do"] == "forget":
                    self.kept.pop(work["task"]["key"], None)
                elif work["do"] != "wait":
                    came.append((work, arguments))
        except Interrupted:
            return
        except BaseException as error:
            came.append((None, error))
        self.back = True  # Nothing keeps the lease from here on, so that a function that does not return costs this executor.
        self.share()
        attached._release()
        if not attached._returned.wait(RETURNING):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    def cancelled(self, *_):
        if self.work and (self.back or self.state.get(State.CANCELLED) == self.work):
            self.work = 0
            raise Cancelled("no application waits for the result any more")

    def renew(self):
        """Begins this process anew, with its lease: the daemon gives it the same task again."""
        self.held = None
        self.share()
        os.chdir(self.modules.start)
        for fd in (self.state.fd, self.before, self.output, self.control.fileno()):
            os.set_inheritable(fd, True)
        os.dup2(self.before, 1)
        os.dup2(self.before, 2)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        environment = dict(self.environment, **{STATE_VARIABLE: str(self.state.fd)})
        command = getattr(sys, "orig_argv", None) or [sys.executable] + sys.argv
        os.execve(sys.executable, command, environment)


def main():
    # Until a task runs, no result can be unwanted.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    worker = None
    try:
        worker = Worker()
        worker.run()
    except (Refused, OSError, http.client.HTTPException, KeyError, ValueError) as error:
        text = "executor: %s: %s\n" % (type(error).__name__, error)
        os.write(worker.before if worker else 2, text.encode(errors="replace"))
        os._exit(1)
    # What tasks have left behind, such as threads, does not keep the process.
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.alarm(LEAVING)
    atexit._run_exitfuncs()
    os._exit(0)


if __name__ == "__main__":
    main()
