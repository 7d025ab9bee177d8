package swap

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// parseSwaps reads /proc/swaps: below a header line, lines of path, type, size and use in KiB, and priority. It skips
// lines of any other form.
func parseSwaps(text string) []Device {
	var all []Device
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 5 {
			continue
		}
		size, sized := parseKiB(words[2])
		used, usedKnown := parseKiB(words[3])
		priority, err := strconv.Atoi(words[4])
		if !sized || !usedKnown || err != nil || used > size {
			continue
		}
		d := Device{Path: unescape(words[0]), Size: size, Used: used, Priority: priority, On: true}
		switch words[1] {
		case "file":
			d.Kind = File
		case "partition":
			d.Kind = Partition
			if _, ok := zramNumber(d.Path); ok {
				d.Kind = Zram
			}
		default:
			continue
		}
		all = append(all, d)
	}
	return all
}

// zramNumber returns the number of a zram device: 3 of /dev/zram3.
func zramNumber(path string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(path, "/dev/zram")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && strconv.Itoa(n) == digits && n >= 0
}

// unescape decodes the kernel's form of blanks in names: a backslash and three octal digits.
func unescape(name string) string {
	var out strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '\\' && i+3 < len(name) {
			if n, err := strconv.ParseUint(name[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		out.WriteByte(name[i])
	}
	return out.String()
}

func parseKiB(text string) (resource.Amount, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(resource.KiB) {
		return 0, false
	}
	return resource.Amount(n) * resource.KiB, true
}

// parseKeyed reads lines of a word and a number, such as /proc/vmstat, or of a word with a colon, a number and kB, as
// in /proc/meminfo. The result of the latter is in bytes.
func parseKeyed(text string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 2:
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil && n >= 0 {
				out[words[0]] = n
			}
		case len(words) == 3 && words[2] == "kB":
			if a, ok := parseKiB(words[1]); ok {
				out[words[0]] = int64(a)
			}
		}
	}
	return out
}

// parseSectorsWritten reads the statistics of a block device: the seventh number is the sectors of 512 bytes that were
// written. The result is in bytes.
func parseSectorsWritten(text string) (resource.Amount, bool) {
	n, ok := number(text, 6)
	if !ok || n > math.MaxInt64/512 {
		return 0, false
	}
	return resource.Amount(n) * 512, true
}

// parseZramMemory reads mm_stat of a zram device: the bytes stored, and the memory that they use.
func parseZramMemory(text string) (stored, memory resource.Amount, ok bool) {
	a, ok1 := number(text, 0)
	b, ok2 := number(text, 2)
	return resource.Amount(a), resource.Amount(b), ok1 && ok2
}

// parseZramWriteback reads bd_stat of a zram device: the third number is what it wrote back to its backing disk, in
// units of 4 KiB. The result is in bytes.
func parseZramWriteback(text string) (resource.Amount, bool) {
	const unit = 4 * resource.KiB
	n, ok := number(text, 2)
	if !ok || n > math.MaxInt64/int64(unit) {
		return 0, false
	}
	return resource.Amount(n) * unit, true
}

// number returns the number at an index of a line.
func number(text string, index int) (int64, bool) {
	words := strings.Fields(text)
	if len(words) <= index {
		return 0, false
	}
	n, err := strconv.ParseInt(words[index], 10, 64)
	return n, err == nil && n >= 0
}

// parseAlgorithms reads a choice such as "[lzo-rle] lzo zstd": the algorithm in brackets is in force.
func parseAlgorithms(text string) (chosen string, all []string) {
	for _, word := range strings.Fields(text) {
		name := word
		if inner, ok := strings.CutPrefix(word, "["); ok {
			if name, ok = strings.CutSuffix(inner, "]"); ok {
				chosen = name
			}
		}
		all = append(all, name)
	}
	return chosen, all
}

// cleanPath returns a path in the form that the kernel prints.
func cleanPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path)), nil
	}
	return path, nil
}
