package cluster

import (
	"fmt"
	"hash/fnv"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// DeriveApp returns what recurs when a job runs again, for a job that does not say so: its name, unless that is the
// name of its program, and the command of its first stage, without what differs from run to run. It is empty for a job
// without a command. In a word of the command,
//
//   - of the program, and of a file whose ending is that of a program (train.py), only the base name stays;
//   - any other path or file becomes * with its ending: /data/big-7.csv and small.csv are *.csv;
//   - a number, a size, and digits in a name become #: 64MiB, part-0017, epochs=20; digits of an option stay (-9, -k2),
//     but not a size (-S64M);
//   - a placeholder such as {memory*0.8} stays.
//
// What is longer than LongestName is cut, and ends in a hash of the whole.
func (j *Job) DeriveApp() string {
	if len(j.Stages) == 0 || len(j.Stages[0].Args) == 0 {
		return ""
	}
	args := j.Stages[0].Args
	program := path.Base(args[0])
	words := []string{program}
	if j.Name != "" && j.Name != program {
		words = []string{digits.ReplaceAllString(j.Name, "#") + ":", program}
	}
	for _, arg := range args[1:] {
		for word := range strings.FieldsSeq(arg) {
			words = append(words, recurring(word))
		}
	}
	whole := strings.Join(words, " ")
	app := NameFor(whole)
	if len(app) < len(whole) && len(app) > LongestName-len(" ~00000000") {
		sum := fnv.New32a()
		sum.Write([]byte(whole))
		mark := fmt.Sprintf(" ~%08x", sum.Sum32())
		app = readable(app, LongestName-len(mark)) + mark
	}
	return app
}

var (
	digits   = regexp.MustCompile(`[0-9]+`)
	quantity = regexp.MustCompile(`^[0-9]+([.][0-9]+)?([kKMGTP]i?)?(B|b|ms|s|m|h|/s|%)*$`)
	option   = regexp.MustCompile(`^-[A-Za-z]*[0-9]+$`)
	sized    = regexp.MustCompile(`^(-[A-Za-z]+)[0-9]+([.][0-9]+)?[kKMGTP]i?B?$`)
	ending   = regexp.MustCompile(`[.][A-Za-z0-9]{0,4}[A-Za-z][A-Za-z0-9]{0,4}$`)
)

// programEndings are the endings of files that are programs for an interpreter.
var programEndings = map[string]bool{".py": true, ".sh": true, ".pl": true, ".rb": true, ".r": true, ".R": true,
	".js": true, ".lua": true, ".jl": true, ".jar": true, ".php": true, ".awk": true, ".sed": true, ".sql": true,
	".class": true, ".scala": true}

// recurring returns the part of a word of a command that stays from run to run.
func recurring(word string) string {
	if name, value, ok := strings.Cut(word, "="); ok && value != "" {
		return recurring(name) + "=" + recurring(value)
	}
	suffix := ending.FindString(word)
	switch {
	case strings.ContainsRune(word, '{'): // a placeholder
		return word
	case quantity.MatchString(word):
		return "#"
	case sized.MatchString(word):
		return sized.ReplaceAllString(word, "$1#")
	case option.MatchString(word):
		return word
	case programEndings[suffix]:
		return path.Base(word)
	case strings.ContainsRune(word, '/') || suffix != "":
		return "*" + suffix
	}
	return digits.ReplaceAllString(word, "#")
}

// NameFor makes a name that people can read of a text, as IsName demands: what is longer than LongestName is cut. It is
// empty if nothing of the text can be shown.
func NameFor(text string) string { return readable(text, LongestName) }

// readable is NameFor with another bound, in bytes.
func readable(text string, most int) string {
	name := strings.ReplaceAll(text, "\uFFFD", "?") // it cannot be distinguished from an invalid byte
	name = strings.TrimSpace(Printable(name))
	for len(name) > most {
		_, last := utf8.DecodeLastRuneInString(name)
		name = strings.TrimSpace(name[:len(name)-last])
	}
	return name
}
