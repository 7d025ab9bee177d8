package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// keyed is a file of "key value" lines, such as memory.stat or memory.events.
type keyed map[string]int64

// parseKeyed keeps the lines that consist of a word and a number and skips all others: kernels add lines of new kinds.
func parseKeyed(text string) keyed {
	out := keyed{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		if n, ok := parseCount(fields[1]).Get(); ok {
			out[fields[0]] = n
		}
	}
	return out
}

// first returns the value of the first of keys that exists.
func (k keyed) first(keys ...string) Maybe[int64] {
	for _, key := range keys {
		if n, ok := k[key]; ok {
			return Known(n)
		}
	}
	return Maybe[int64]{}
}

// parseCount parses a non-negative number. Version 1 prints counters as unsigned, so a number that does not fit is
// missing.
func parseCount(text string) Maybe[int64] {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return Maybe[int64]{}
	}
	return Known(n)
}

// parseBound parses a bound: a number, "max" (version 2), or -1 or a number of nearly 2^63 (version 1) for NoLimit.
func parseBound(text string) Maybe[int64] {
	text = strings.TrimSpace(text)
	if text == "max" || text == "-1" {
		return Known(NoLimit)
	}
	n, ok := parseCount(text).Get()
	if ok && n >= NoLimit>>1 {
		n = NoLimit
	}
	return Maybe[int64]{n, ok}
}

// isDevice reports whether s is major:minor.
func isDevice(s string) bool {
	major, minor, ok := strings.Cut(s, ":")
	if !ok {
		return false
	}
	_, err1 := strconv.ParseUint(major, 10, 32)
	_, err2 := strconv.ParseUint(minor, 10, 32)
	return err1 == nil && err2 == nil
}

// parseIOStat parses io.stat of version 2, lines of a device and key=value pairs, and adds up the devices.
func parseIOStat(text string) (read, written int64) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !isDevice(fields[0]) {
			continue
		}
		for _, f := range fields[1:] {
			switch key, value, _ := strings.Cut(f, "="); key {
			case "rbytes":
				read += parseCount(value).Or(0)
			case "wbytes":
				written += parseCount(value).Or(0)
			}
		}
	}
	return read, written
}

// parseServiceBytes parses blkio.throttle.io_service_bytes of version 1, lines of device, kind and number, and adds up
// the devices. It uses Read and Write and not Total, which includes discards. counted is false if there is no such
// line.
func parseServiceBytes(text string) (read, written int64, counted bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !isDevice(fields[0]) {
			continue
		}
		switch n, ok := parseCount(fields[2]).Get(); {
		case !ok:
		case fields[1] == "Read":
			read, counted = read+n, true
		case fields[1] == "Write":
			written, counted = written+n, true
		}
	}
	return read, written, counted
}

// parseProcs parses cgroup.procs. A process outside our pid namespace is listed as 0 and skipped.
func parseProcs(text string) []int {
	var out []int
	for word := range strings.FieldsSeq(text) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			out = append(out, pid)
		}
	}
	return out
}

// duration converts a count of units to a duration; a count that does not fit is missing.
func duration(count Maybe[int64], unit time.Duration) Maybe[time.Duration] {
	n, ok := count.Get()
	if !ok || n > int64(NoLimit)/int64(unit) {
		return Maybe[time.Duration]{}
	}
	return Known(time.Duration(n) * unit)
}

// parseProcessIO parses /proc/PID/io.
func parseProcessIO(text []byte) (Transfers, error) {
	read, some := counted(text, "read_bytes:")
	written, all := counted(text, "write_bytes:")
	cancelled, _ := counted(text, "cancelled_write_bytes:")
	if !some || !all {
		return Transfers{}, ErrUnsupported
	}
	return Transfers{read, written, cancelled}, nil
}

// parseKinship parses /proc/PID/stat. The name of the program, which may contain anything, ends at the last
// parenthesis.
func parseKinship(text []byte) (kinship, error) {
	const state, parent, born = 0, 1, 19 // fields after the name
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= born {
		return kinship{}, fmt.Errorf("it has %d fields", len(fields))
	}
	k := kinship{ended: len(fields[state]) == 1 && bytes.ContainsAny(fields[state], "ZXx")}
	var err, err2 error
	k.parent, err = strconv.Atoi(string(fields[parent]))
	k.born, err2 = strconv.ParseInt(string(fields[born]), 10, 64)
	return k, errors.Join(err, err2)
}
