"""A working set that swells to so many MiB, shrinks to a quarter, and swells half as much again, read all over so many times, and checked."""
import mmap, random, sys, zlib

mib, reads = int(sys.argv[1]), int(sys.argv[2])
chunks, drawn = [], random.Random(1)
size = 1 << 20
block = random.Random(2).randbytes(2 * size)


def grow():
    m = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    at = 64 * len(chunks) % size
    m[:] = block[at : at + size]
    chunks.append((m, zlib.crc32(m)))


def check(i):
    if zlib.crc32(chunks[i][0]) != chunks[i][1]:
        sys.exit(4)


levels, stay = [mib // 4, mib, mib // 4, mib // 2, mib // 4], mib // 2
steps, at = 0, 0
for level in levels:
    steps, at = steps + abs(level - at) + stay, level
done = 0


def step():
    global done
    done += 1
    for _ in range(reads * done // steps - reads * (done - 1) // steps):
        check(drawn.randrange(len(chunks)))


for level in levels:
    while len(chunks) != level:
        if len(chunks) < level:
            grow()
        else:
            chunks.pop()[0].close()
        step()
    for _ in range(stay):
        step()
for i in range(len(chunks)):
    check(i)
