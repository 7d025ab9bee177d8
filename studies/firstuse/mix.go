package firstuse

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// What the programs read is made by inputs.sh; the other files are what people write for them.
//
//go:embed mix
var files embed.FS

// program is a program of the mix.
type program struct {
	name string
	// asks is a command that prints its version, says what that must contain, and version is the one for which the sizes
	// of the inputs were chosen. from is the Debian package that has it, or the package of pip.
	asks, says, version, from string
	// command is what runs where jobs use a core. Its words have no quotes.
	command string
	// input is the file that comes slowly where jobs mostly wait, and waits is the command that then reads it.
	input, waits string
	// result is the file or folder that the program makes.
	result string
}

// programs are the mix.
var programs = []program{
	{"sort", "sort --version", "GNU coreutils", "9.1", "coreutils",
		"sort -t, -k2,2n -k1,1n -o out/sort numbers.txt",
		"numbers.txt", "sort -t, -k2,2n -k1,1n -o out/sort", "out/sort"},
	{"sqlite", "sqlite3 --version", "3.", "3.40.1", "sqlite3",
		"sqlite3 -batch -init report.sql :memory: .quit",
		"sqlite.csv", "sqlite3 -batch -init stream.sql :memory: .quit", "out/sqlite"},
	{"pandas", "python3 -c import+pandas;print(pandas.__version__)", ".", "3.1.1", "pandas of pip",
		"python3 report-pandas.py pandas.csv",
		"pandas.csv", "python3 report-pandas.py /dev/stdin", "out/pandas"},
	{"polars", "python3 -c import+polars;print(polars.__version__)", ".", "2.1.0", "polars of pip",
		"python3 report-polars.py polars.csv",
		"polars.csv", "python3 report-polars.py -", "out/polars"},
	{"duckdb", "python3 -c import+duckdb;print(duckdb.__version__)", ".", "2.0.1", "duckdb of pip",
		"python3 report-duckdb.py duckdb.csv",
		"duckdb.csv", "python3 report-duckdb.py /dev/stdin", "out/duckdb"},
	{"sklearn", "python3 -c import+sklearn;print(sklearn.__version__)", ".", "1.9.1", "scikit-learn of pip",
		"python3 cluster.py points.csv",
		"points.csv", "python3 cluster.py /dev/stdin", "out/sklearn"},
	{"g++", "g++ --version", "Free Software Foundation", "12.2.0", "g++",
		"g++ -O2 -c unit.cpp -o out/unit.o",
		"unit.cpp", "g++ -O2 -c -x c++ - -o out/unit.o", "out/unit.o"},
	{"imagemagick", "mogrify -version", "ImageMagick", "6.9.11-60", "imagemagick",
		"mogrify -path out -format jpg -resize 50% photo.ppm",
		"photo.ppm", "cat > slow/photo.ppm && mogrify -path out -format jpg -resize 50% slow/photo.ppm", "out/photo.jpg"},
	{"javac", "javac -version", "javac", "17.0.15", "default-jdk-headless",
		"javac -d out/javac @sources.txt",
		"java.zip", "cat > slow/java.zip && unzip -q -o slow/java.zip && javac -d out/javac @sources.txt",
		"out/javac"},
	{"xz", "xz --version", "XZ Utils", "5.4.1", "xz-utils",
		"xz -9 -k -f text",
		"text", "xz -9 > text.xz", "text.xz"},
	{"node", "node --version", "v", "20.20.2", "nodejs",
		"node report.js table.json",
		"table.json", "node report.js /dev/stdin", "out/node"},
	{"ffmpeg", "ffmpeg -version", "ffmpeg version", "5.1.9", "ffmpeg",
		"ffmpeg -nostdin -y -loglevel error -i video.mkv -c:v libx264 out/video.h264",
		"video.mkv", "ffmpeg -y -loglevel error -i pipe:0 -c:v libx264 out/video.h264", "out/video.h264"},
}

// tools are what makes the inputs, and the contenders, need besides.
var tools = []program{
	{name: "parallel", asks: "parallel --version", says: "GNU parallel", version: "20221122", from: "parallel"},
	{name: "openssl", asks: "openssl version", says: "OpenSSL", from: "openssl"},
	{name: "awk", asks: "awk 1+/dev/null", from: "mawk"},
	{name: "zip", asks: "zip -v", from: "zip"},
	{name: "unzip", asks: "unzip -v", from: "unzip"},
	{name: "pv", asks: "pv --version", says: "pv", version: "1.6.20", from: "pv"},
	{name: "unshare", asks: "unshare --version", from: "util-linux"},
}

// A kind of jobs.
const (
	Compute = "compute" // each uses a core
	Wait    = "wait"    // each waits for its input, which comes in the time arrival
)

// Kinds returns the kinds of jobs.
func Kinds() []string { return []string{Compute, Wait} }

// arrival is how long an input takes to arrive where jobs mostly wait, seconds.
const arrival = 40

// Criteria, which were settled before the first run.
const (
	// ofBoxes is the most of the time of boxes of the peak that bellows may take, from the second round on; ofOthers the
	// most of that of the best other contender where memory is short, and anywhere.
	ofBoxes, ofOthers, anywhere = 0.75, 0.85, 1.05
	// shortFrom is the sum of all peaks over the memory of the node from which on memory is short.
	shortFrom = 1.5
	// enoughRounds are the rounds that a result needs.
	enoughRounds = 5
	// The sum of all peaks, at full size.
	leastSum, mostSum = 5 * resource.GiB, 6 * resource.GiB
)

// output is the text that a command without quotes prints, in which + is a blank within a word.
func output(ctx context.Context, command string) (string, error) {
	words := strings.Fields(command)
	for i := range words {
		if words[0] == "python3" || words[0] == "awk" {
			words[i] = strings.ReplaceAll(words[i], "+", " ")
		}
	}
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	return string(out), err
}

// found is the version of a program; ok is false if it is not there.
func (p *program) found(ctx context.Context) (version string, ok bool) {
	out, err := output(ctx, p.asks)
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return line, err == nil && strings.Contains(out, p.says)
}

// find returns the versions of the programs, by name, and names those that this machine does not have, each with what
// has it.
func find(ctx context.Context) (versions map[string]string, lacking []string) {
	versions = map[string]string{}
	for _, list := range [][]program{programs, tools} {
		for i := range list {
			p := &list[i]
			version, ok := p.found(ctx)
			if versions[p.name] = version; !ok {
				lacking = append(lacking, fmt.Sprintf("%s (%s)", p.name, p.from))
			}
		}
	}
	return versions, lacking
}

// script is the file that has the command of a program where jobs wait.
func (p *program) script() string { return "slow-" + p.name + ".sh" }

// commandOf is the command of a kind of jobs.
func (p *program) commandOf(kind string) string {
	if kind == Wait {
		return "sh " + p.script()
	}
	return p.command
}

// makeInputs makes the files of the mix in dir.
func makeInputs(ctx context.Context, dir string, tenths int) error {
	err := fs.WalkDir(files, "mix", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, e.Name()), text, 0o600)
	})
	if err != nil {
		return err
	}
	for i := range programs {
		p := &programs[i]
		text := fmt.Sprintf("# The input comes as from a slow network.\n"+
			"pv -q -L $(($(stat -c %%s %[1]s) / %[2]d + 1)) %[1]s |\n\t%[3]s\n", p.input, arrival, p.piped())
		if err := os.WriteFile(filepath.Join(dir, p.script()), []byte(text), 0o600); err != nil {
			return err
		}
	}
	sql, err := files.ReadFile("mix/report.sql")
	if err != nil {
		return err
	}
	stream := strings.ReplaceAll(string(sql), "sqlite.csv", "/dev/stdin")
	if err := os.WriteFile(filepath.Join(dir, "stream.sql"), []byte(stream), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "inputs.sh", fmt.Sprint(tenths))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the inputs: %w: %s", err, out)
	}
	return nil
}

// piped is what reads the input from a pipe.
func (p *program) piped() string {
	if strings.Contains(p.waits, "&&") {
		return "{ " + p.waits + "; }"
	}
	return p.waits
}
