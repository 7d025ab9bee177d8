package cgroup

// memoryFiles are the files of the memory controller in one version, and their words.
type memoryFiles struct {
	usage, limit, peak string
	kills              string // has the word oom_kill
	stat               statWords
	// swap has the swapped bytes; empty where memory.stat has them.
	swap string
	// charged is where the kernel counts swapped memory, alone or in one sum with usage.
	charged string
	bound   func(bytes int64) string // as limit takes it
}

// statWords are the words of memory.stat from which Held is made; an empty word means none.
type statWords struct {
	anon, shared, swap, locked, files, mapped, anonRefaults, fileRefaults, majorFaults string
	// cached counts pages in memory whose place in swap is kept: swap and charged count them, too; empty where they do
	// not.
	cached string
	// lists count every page that only swap can free, except locked pages.
	lists []string
}

// The bounds of version 1 on memory, and on memory and swap together.
const (
	memoryV1 = "memory.limit_in_bytes"
	memsw    = "memory.memsw.limit_in_bytes"
)

// memoryOf has the files of each version. memory.peak exists since Linux 5.19.
var memoryOf = map[Version]*memoryFiles{
	V1: {usage: "memory.usage_in_bytes", limit: memoryV1, peak: "memory.max_usage_in_bytes", kills: "memory.oom_control",
		charged: "memory.memsw.usage_in_bytes", bound: orMinusOne,
		stat: statWords{anon: "total_rss", shared: "total_shmem", swap: "total_swap", locked: "total_unevictable",
			files: "total_cache", mapped: "total_mapped_file", anonRefaults: "total_workingset_refault_anon",
			fileRefaults: "total_workingset_refault_file", majorFaults: "total_pgmajfault",
			lists: []string{"total_inactive_anon", "total_active_anon"}}},
	V2: {usage: "memory.current", limit: "memory.max", peak: "memory.peak", kills: "memory.events",
		swap: "memory.swap.current", charged: "memory.swap.current", bound: orMax,
		stat: statWords{anon: "anon", shared: "shmem", locked: "unevictable", files: "file", mapped: "file_mapped",
			cached: "swapcached", anonRefaults: "workingset_refault_anon", fileRefaults: "workingset_refault_file",
			majorFaults: "pgmajfault",
			lists:       []string{"inactive_anon", "active_anon"}}},
}

// Held is the memory of a group that the kernel can free only by swapping, and its page cache.
type Held struct {
	// AnonBytes is anonymous memory and memory shared between processes, which the kernel counts as page cache.
	AnonBytes, SwapBytes int64
	// UnmappedBytes is memory that no program has mapped: read back from swap ahead of need, or written to swap and not
	// freed yet. Version 1 counts it neither as anonymous nor as swapped. Version 2 counts it as swapped; before Linux
	// 5.12, which does not say how much it is, it is in SwapBytes instead.
	UnmappedBytes int64
	// AnonRefaults counts pages that came back soon after they were swapped out; 0 where the kernel does not report it.
	AnonRefaults int64
	// LockedBytes is memory that programs locked, so that it cannot be swapped.
	LockedBytes int64
	// FileBytes is page cache without memory that only swap can free. MappedBytes is the part of it that programs have
	// mapped. FileRefaults counts pages of files that came back soon after they were evicted; 0 where the kernel does
	// not report it.
	FileBytes, MappedBytes, FileRefaults int64
	// MajorFaults counts page faults that read from a disk, swap included.
	MajorFaults int64
}

// InMemory is the anonymous and shared memory, bytes, that is in memory, whether or not a program has mapped it.
func (h *Held) InMemory() int64 { return h.AnonBytes + h.UnmappedBytes }

// held reads the text of memory.stat. inSwap is what the file with the swapped bytes says, where memory.stat has no
// word for them. A page that was read back from swap may keep its place there: it counts once, as memory.
func (w *statWords) held(text []byte, inSwap int64) Held {
	shared, cached := field(text, w.shared), field(text, w.cached)
	h := Held{AnonBytes: field(text, w.anon) + shared, SwapBytes: max(0, inSwap-cached),
		LockedBytes: field(text, w.locked), AnonRefaults: field(text, w.anonRefaults),
		FileRefaults: field(text, w.fileRefaults), MajorFaults: field(text, w.majorFaults)}
	if w.swap != "" {
		h.SwapBytes = field(text, w.swap)
	}
	h.MappedBytes = max(0, field(text, w.mapped)-shared) // shared memory counts as a mapped file
	if _, said := counted(text, w.cached); said || w.cached == "" {
		listed := int64(0)
		for _, word := range w.lists {
			listed += field(text, word)
		}
		h.UnmappedBytes = max(0, listed-h.AnonBytes)
	}
	// The kernel counts both as page cache.
	h.FileBytes = max(0, field(text, w.files)-shared-max(cached, h.UnmappedBytes))
	return h
}
