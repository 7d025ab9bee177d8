package top

import (
	"fmt"
	"math"
	"strings"
)

// unknown is an amount that nothing has measured.
const unknown = -1

// orUnknown returns an amount, or unknown for none: a job that has not started was granted nothing.
func orUnknown(n int64) int64 {
	if n == 0 {
		return unknown
	}
	return n
}

// size prints bytes in at most five characters, in powers of 1024; "-" if they are unknown.
func size(bytes int64) string {
	switch {
	case bytes < 0:
		return "-"
	case bytes < 1024:
		return fmt.Sprintf("%dB", bytes)
	}
	v, unit := float64(bytes), -1
	for v >= 1023.5 {
		v, unit = v/1024, unit+1
	}
	text := fmt.Sprintf("%.0f", v)
	if v < 9.95 {
		text = strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	return text + string("KMGTPE"[unit])
}

// cores prints millicores as cores, in at most five characters below 100,000 cores; "-" if they are unknown.
func cores(milli int64) string {
	decimals := 2
	switch {
	case milli < 0:
		return "-"
	case milli >= 999_950:
		decimals = 0
	case milli >= 9_995:
		decimals = 1
	}
	text := fmt.Sprintf("%.*f", decimals, float64(milli)/1000)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// bar draws how much of a whole is used, and what was used or is taken beyond that; what is more than the whole is
// not drawn.
func bar(used, more, whole int64, columns int) string {
	if whole <= 0 || columns <= 0 {
		return strings.Repeat(" ", max(0, columns))
	}
	part := func(n int64) int {
		share := min(1, max(0, float64(n)/float64(whole)))
		return int(math.Ceil(share * float64(columns)))
	}
	u := part(used)
	m := max(u, part(more))
	return strings.Repeat("█", u) + strings.Repeat("▒", m-u) + strings.Repeat("·", columns-m)
}
