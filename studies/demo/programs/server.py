"""memcached under load: so many MiB are set, then so many thousand values of 16 KiB are read at random, and checked."""
import os, random, socket, subprocess, sys, time

mib, thousands = int(sys.argv[1]), int(sys.argv[2])
path = "server-%d.sock" % os.getpid()
server = subprocess.Popen(["memcached", "-u", "root", "-s", path, "-t", "1", "-m", str(2 * mib + 64)])
try:
    for _ in range(3000):
        try:
            wire = socket.socket(socket.AF_UNIX)
            wire.connect(path)
            break
        except OSError:
            time.sleep(0.01)
    answers = wire.makefile("rb")
    size = 16 << 10
    block = random.Random(1).randbytes(2 * size)
    value = lambda i: block[i % size : i % size + size]
    for i in range(64 * mib):
        wire.sendall(b"set k%d 0 0 %d\r\n%s\r\n" % (i, size, value(i)))
        if answers.readline() != b"STORED\r\n":
            sys.exit(4)
    drawn = random.Random(2)
    for _ in range(1000 * thousands):
        i = drawn.randrange(64 * mib)
        wire.sendall(b"get k%d\r\n" % i)
        if not answers.readline().startswith(b"VALUE") or answers.read(size) != value(i):
            sys.exit(4)
        answers.readline(), answers.readline()
finally:
    alive = server.poll() is None
    server.kill()
    server.wait()
    if os.path.exists(path):
        os.remove(path)
if not alive:
    os.kill(os.getpid(), 9)  # as the server was
