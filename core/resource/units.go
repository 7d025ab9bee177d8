package resource

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Larger units than those of everyday sizes. The largest Amount is just under 8192 PiB.
const (
	TB  = 1000 * GB
	PB  = 1000 * TB
	TiB = 1024 * GiB
	PiB = 1024 * TiB
)

type unit struct {
	name string
	size Amount
}

// byteUnits are the units that are printed, the largest first.
var byteUnits = []unit{
	{"PiB", PiB}, {"PB", PB}, {"TiB", TiB}, {"TB", TB}, {"GiB", GiB}, {"GB", GB}, {"MiB", MiB}, {"MB", MB},
	{"KiB", KiB}, {"KB", KB}, {"B", 1},
}

// shortUnits are read but never printed.
var shortUnits = []unit{
	{"kB", KB}, {"K", KB}, {"M", MB}, {"G", GB}, {"T", TB}, {"P", PB},
	{"Ki", KiB}, {"Mi", MiB}, {"Gi", GiB}, {"Ti", TiB}, {"Pi", PiB},
}

// bitUnits are the units of rates that are read but never printed: networks are sold by the bit.
var bitUnits = []unit{
	{"kbit", KB / 8}, {"Kbit", KB / 8}, {"Mbit", MB / 8}, {"Gbit", GB / 8}, {"Tbit", TB / 8},
}

const (
	acceptedCPU    = "write cores such as 2 or 1.5, or millicores such as 500m"
	acceptedMemory = "write a number and one of B, KB, MB, GB, TB, PB (powers of 1000; K, M, G, T, P mean the same) or " +
		"KiB, MiB, GiB, TiB, PiB (powers of 1024), such as 4GiB"
	acceptedRate = "write a number and one of B/s, KB/s, MB/s, GB/s, TB/s, PB/s (powers of 1000), " +
		"KiB/s, MiB/s, GiB/s, TiB/s, PiB/s (powers of 1024), or kbit/s, Mbit/s, Gbit/s, Tbit/s (bits; 8 are a byte), " +
		"such as 110MB/s or 1Gbit/s"
)

// ParseCPU reads cores ("2", "1.5") or millicores ("500m") and returns millicores. Negative numbers, fractions of a
// millicore and anything above the largest Amount are errors.
func ParseCPU(text string) (Amount, error) {
	d, rest, why := scanDecimal(text)
	size := Core
	switch {
	case why != "":
	case rest == "m":
		size = 1
	case rest != "":
		why = "has an unknown unit"
	}
	if why != "" {
		return 0, malformed("CPU", text, why, acceptedCPU)
	}
	a, whole, ok := d.times(size)
	if !ok {
		return 0, malformed("CPU", text, "is more than "+strconv.FormatInt(math.MaxInt64, 10)+"m", acceptedCPU)
	}
	if !whole {
		return 0, malformed("CPU", text, "is finer than 1m", acceptedCPU)
	}
	return a, nil
}

// ParseMemory reads a size with its unit ("4GiB", "1.5GiB", "10000MB", "512M") and returns bytes, rounded to the
// nearest byte. Units with an i are powers of 1024, units without it powers of 1000; their case matters. A bare number
// is an error, and so are negative numbers and anything above the largest Amount.
func ParseMemory(text string) (Amount, error) {
	return parseBytes("memory", text, "", acceptedMemory, byteUnits, shortUnits)
}

// ParseRate reads bytes per second ("110MB/s"), with the units of ParseMemory, or bits per second ("1Gbit/s"), and
// returns bytes per second.
func ParseRate(text string) (Amount, error) {
	return parseBytes("rate", text, "/s", acceptedRate, byteUnits, shortUnits, bitUnits)
}

func parseBytes(noun, text, suffix, accepted string, units ...[]unit) (Amount, error) {
	d, rest, why := scanDecimal(text)
	if why != "" {
		return 0, malformed(noun, text, why, accepted)
	}
	if rest == "" {
		return 0, malformed(noun, text, "has no unit", accepted)
	}
	name, found := strings.CutSuffix(rest, suffix)
	if !found {
		return 0, malformed(noun, text, "does not end in "+suffix, accepted)
	}
	size, known := unitSize(name, units)
	if !known {
		return 0, malformed(noun, text, "has an unknown unit", accepted+didYouMean(strings.TrimSuffix(text, rest), rest))
	}
	a, _, ok := d.times(size)
	if !ok {
		why = "is more than " + strconv.FormatInt(math.MaxInt64, 10) + "B" + suffix
		return 0, malformed(noun, text, why, accepted)
	}
	return a, nil
}

func unitSize(name string, units [][]unit) (Amount, bool) {
	for _, table := range units {
		for _, u := range table {
			if u.name == name {
				return u.size, true
			}
		}
	}
	return 0, false
}

// didYouMean asks for the size that was probably meant by a unit in the wrong case or behind a space, or by a letter,
// as other programs write 1g for 1GiB. It is not read so, because 1G is 1GB here. It is empty if no unit is near; rates
// have none, because Gb may be gigabits.
func didYouMean(number, unit string) string {
	unit = strings.TrimSpace(unit)
	for _, u := range byteUnits {
		if strings.EqualFold(u.name, unit) || len(unit) == 1 && strings.EqualFold(u.name, unit+"iB") {
			return "; did you mean " + number + u.name + "?"
		}
	}
	return ""
}

// malformed is the one sentence that a user sees. Long texts are cut, since a user may have pasted a whole file by
// mistake.
func malformed(noun, text, why, accepted string) error {
	if text == "" {
		return fmt.Errorf("%s %q is empty: %s", noun, text, accepted)
	}
	const longest = 40
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return fmt.Errorf("%s %q %s: %s", noun, text, why, accepted)
}

// decimal is the number whole + frac/scale. Invariant: frac < scale, and scale is a power of ten up to 1e18. Sizes are
// read as decimals because a float64 cannot represent every Amount.
type decimal struct {
	whole, frac, scale uint64
}

const maxDecimals = 18

// scanDecimal reads digits, and perhaps a point and more digits, from the front of text. why says what is wrong
// with the number, and is empty if nothing is.
func scanDecimal(text string) (d decimal, rest, why string) {
	d.scale = 1
	i := 0
	for ; i < len(text) && isDigit(text[i]); i++ {
		digit := uint64(text[i] - '0')
		if d.whole > (math.MaxUint64-digit)/10 {
			return d, "", "is too large"
		}
		d.whole = d.whole*10 + digit
	}
	if i == 0 {
		if strings.HasPrefix(text, "-") {
			return d, "", "is negative"
		}
		return d, "", "does not begin with a digit"
	}
	if i == len(text) || text[i] != '.' {
		return d, text[i:], ""
	}
	point := i
	for i++; i < len(text) && isDigit(text[i]); i++ {
		if i-point > maxDecimals {
			return d, "", "has more than 18 decimals"
		}
		d.frac = d.frac*10 + uint64(text[i]-'0')
		d.scale *= 10
	}
	if i == point+1 {
		return d, "", "has no digit after the point"
	}
	return d, text[i:], ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// times returns d * size rounded to the nearest whole number, halves upwards. whole says that nothing was rounded;
// ok is false if the product is above the largest Amount.
func (d decimal) times(size Amount) (a Amount, whole, ok bool) {
	hi, lo := bits.Mul64(d.whole, uint64(size))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false, false
	}
	// frac < scale, so the quotient is below size and Div64 cannot overflow.
	fracHi, fracLo := bits.Mul64(d.frac, uint64(size))
	part, rem := bits.Div64(fracHi, fracLo, d.scale)
	if 2*rem >= d.scale {
		part++
	}
	if lo+part > math.MaxInt64 {
		return 0, false, false
	}
	return Amount(lo + part), rem == 0, true
}

// formatCores prints millicores for people.
func formatCores(a Amount) string {
	if a == Core {
		return "1 core"
	}
	return FormatCPU(a) + " cores"
}

// FormatCPU prints millicores exactly: "500m" below one core, "1.5" from there on. ParseCPU reads it back.
func FormatCPU(a Amount) string {
	sign, mag := magnitude(a)
	if mag != 0 && mag < uint64(Core) {
		return sign + strconv.FormatUint(mag, 10) + "m"
	}
	text := sign + strconv.FormatUint(mag/uint64(Core), 10)
	if milli := mag % uint64(Core); milli != 0 {
		text += "." + strings.TrimRight(fmt.Sprintf("%03d", milli), "0")
	}
	return text
}

// FormatMemory prints bytes for people: exactly if that takes at most four digits of a power of 1024 or five of a
// power of 1000 ("4GiB", "1536MiB", "10GB"), and otherwise with three or four digits of the largest ("1.18GiB",
// "92.9MiB").
func FormatMemory(a Amount) string { return formatShort(a, true) }

// FormatMemoryExact prints bytes as a whole number of the largest unit that divides them. ParseMemory reads the
// same value back, for a >= 0.
func FormatMemoryExact(a Amount) string {
	sign, mag := magnitude(a)
	n, name := wholeUnits(mag)
	return sign + strconv.FormatUint(n, 10) + name
}

// FormatRate prints bytes per second for people, as FormatMemory does, with decimals in powers of 1000: "110MB/s".
func FormatRate(a Amount) string { return formatShort(a, false) + "/s" }

// FormatRateExact prints bytes per second so that ParseRate reads the same value back, for a >= 0.
func FormatRateExact(a Amount) string { return FormatMemoryExact(a) + "/s" }

// String prints what is not zero, exactly: "cpu=2 memory=4GiB disk=110MB/s". The zero Vector is "0". Different
// Vectors have different texts.
func (v Vector) String() string {
	var parts []string
	for k, a := range v {
		if a != 0 {
			parts = append(parts, Kind(k).String()+"="+Kind(k).FormatExact(a))
		}
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, " ")
}

// formatShort rounds to powers of 1024 if binary, and to powers of 1000 otherwise.
func formatShort(a Amount, binary bool) string {
	sign, mag := magnitude(a)
	n, name := wholeUnits(mag)
	most := uint64(99_999) // of powers of 1000: people write sizes in them
	if strings.Contains(name, "i") {
		most = 9_999 // of powers of 1024: measurements in pages are not round
	}
	if n <= most {
		return sign + strconv.FormatUint(n, 10) + name
	}
	for _, u := range byteUnits {
		if mag < uint64(u.size) || strings.Contains(u.name, "i") != binary {
			continue
		}
		decimals, x := 1, float64(mag)/float64(u.size)
		switch {
		case x < 10:
			decimals = 2
		case x >= 1000:
			decimals = 0
		}
		return sign + strconv.FormatFloat(x, 'f', decimals, 64) + u.name
	}
	return FormatMemoryExact(a)
}

// wholeUnits returns mag in the largest unit that divides it.
func wholeUnits(mag uint64) (n uint64, name string) {
	for _, u := range byteUnits {
		if mag != 0 && mag%uint64(u.size) == 0 {
			return mag / uint64(u.size), u.name
		}
	}
	return mag, "B"
}

// magnitude also serves the smallest Amount, whose negation is no Amount.
func magnitude(a Amount) (sign string, mag uint64) {
	if a < 0 {
		return "-", -uint64(a)
	}
	return "", uint64(a)
}
