package machine

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/internal/testcert"
	"github.com/bellows-rm/bellows/internal/testfile"
)

// Every setting can be in a file, as a flag has it.
const allSettings = `# of a test
bellows_config: 1
memory: 64MiB
cpus: 500m
disk: 0
network: 1Gbit/s
swap_budget: 200GB/day
policy: fair
set:
  fair.reservations: false
  fair.gaps: auto
flex: paper
puff_ratio: 0.2
still: keeps
memory_default: stated
output_limit: 1MiB
keep_for: 90m
keep_jobs: 7
keep_output: 1GB
keep_events: 2GB
verbose: true
log_format: json
keep_user_jobs: 6
keep_user_output: 500MB
socket_mode: 0620
socket_group: root
operators: 54400
listen: 127.0.0.1:8443
tls_cert: /CERTIFICATE
tls_key: /KEY
user_quota:
  memory: 4GiB
  submissions: 60
  ada.lovelace.running: 3 refuses
  root.memory: none
queue_quota: {batch.cpus: 1500m, waiting: 7 waits}
`

// write writes a configuration file, and a certificate if the file has one, and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bellows.yaml")
	if strings.Contains(text, "/CERTIFICATE") {
		certificate, key, err := testcert.Write(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		text = strings.NewReplacer("/CERTIFICATE", certificate, "/KEY", key).Replace(text)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withArguments returns the options of up with these arguments, after the file was read.
func withArguments(t *testing.T, args ...string) (*upOptions, error) {
	t.Helper()
	o, cmd := newUp()
	if err := cmd.ParseFlags(append([]string{"--state", t.TempDir()}, args...)); err != nil {
		t.Fatal(err)
	}
	return o, o.configure(cmd.Flags())
}

// The example of the documentation and a file with all settings are read, and the options have what they say.
func TestReadConfig(t *testing.T) {
	for _, page := range []string{"formats.md", "multi-user.md"} {
		for _, text := range testfile.Examples(t, "../../../../docs/"+page, "config") {
			if _, err := parseConfig(page, []byte(text)); err != nil {
				t.Error(err)
			}
		}
	}
	o, err := withArguments(t, "--config", write(t, allSettings))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range o.table() {
		if s.named() == nil && !o.origins.stated(s.field()) {
			t.Errorf("the file with all settings has no %s: add it", s.field())
		}
	}
	c, err := o.daemon()
	switch {
	case err != nil:
		t.Fatal(err)
	case c.Agent.Capacity != resource.Of(500, 64*resource.MiB).With(resource.Network, 125*resource.MB) || c.MeasureDisk:
		t.Errorf("capacity %v, measures the disk: %v", c.Agent.Capacity, c.MeasureDisk)
	case c.Driver.Policy.Name() != "fair" || c.Driver.Settings["fair.reservations"] != "false" ||
		c.Driver.Settings["fair.gaps"] != "auto":
		t.Errorf("policy %s with %v", c.Driver.Policy.Name(), c.Driver.Settings)
	case c.Driver.Keep.For != 90*time.Minute || c.Driver.Keep.Jobs != 7 || c.Driver.Keep.Output != resource.GB ||
		c.Driver.Keep.Events != 2*resource.GB || c.Driver.Keep.UserJobs != 6 || c.Driver.Keep.UserOutput != 500*resource.MB:
		t.Errorf("retention %+v", *c.Driver.Keep)
	case c.Door.Mode != 0o620 || c.Door.Group.Name != "root" || c.Operators.GID != 54400:
		t.Errorf("socket %+v, operators %+v", c.Door, c.Operators)
	case c.Listen != "127.0.0.1:8443" || c.Certificate == nil || c.Certificate.Leaf.Subject.CommonName != "bellows test":
		t.Errorf("listens on %q with %v", c.Listen, c.Certificate)
	case !reflect.DeepEqual(c.Driver.Quotas, &cluster.Quotas{
		Users: map[string]cluster.Limits{"": {cluster.QuotaMemory: {Most: int64(4 * resource.GiB)},
			cluster.QuotaSubmissions: {Most: 60, Refuses: true}},
			"ada.lovelace": {cluster.QuotaRunning: {Most: 3, Refuses: true}},
			"root":         {cluster.QuotaMemory: {Most: cluster.Unlimited}}},
		Queues: map[string]cluster.Limits{"": {cluster.QuotaWaiting: {Most: 7}}, "batch": {cluster.QuotaCPU: {Most: 1500}}}}):
		t.Errorf("quotas %+v", c.Driver.Quotas)
	case c.Agent.OutputLimit != resource.MiB || c.Agent.SwapBudget != 200*resource.GB ||
		c.Agent.Memory.PuffRatio != 0.2 || !c.Driver.Keeps || !o.verbose || c.Configuration != o.origins.file:
		t.Errorf("daemon %+v", c)
	}
}

// Flags take precedence over the file, each setting of a policy by itself, and the rows say where values come from.
func TestFlagsTakePrecedence(t *testing.T) {
	path := write(t, allSettings)
	o, err := withArguments(t, "--config", path, "--keep-jobs", "8", "--set", "fair.reservations=true", "--memory",
		"32MiB")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"keep_jobs": "8 flag", "memory": "32MiB flag", "set fair.reservations": "true flag",
		"set fair.gaps": "auto " + path + ":11", "disk": "0 " + path + ":5", "verbose": "true " + path + ":21"}
	for _, r := range o.rows() {
		if text, ok := want[r.Setting]; ok && text != r.Value+" "+r.From {
			t.Errorf("%s is %s from %s, want %s", r.Setting, r.Value, r.From, text)
		}
		delete(want, r.Setting)
	}
	if len(want) > 0 {
		t.Errorf("no rows of %v", want)
	}
	// The daemon that --detach starts gets the flags, and reads the file itself.
	if again := strings.Join(o.origins.again, " "); strings.Contains(again, "gaps") ||
		strings.Contains(again, "verbose") ||
		!strings.Contains(again, "--config="+path) {
		t.Errorf("arguments %s", again)
	}
	// Settings of another policy than that of a flag would change nothing.
	other, err := withArguments(t, "--config", path, "--policy", "drf")
	if err != nil || len(other.settings) > 0 {
		t.Errorf("drf has settings %v: %v", other.settings, err)
	}
	if _, err := other.daemon(); err != nil {
		t.Error(err)
	}
	none, err := withArguments(t)
	if err != nil || none.origins.file != "" {
		t.Errorf("a daemon with its own state directory read %q: %v", none.origins.file, err)
	}
	for _, r := range none.rows() {
		if r.From != "default" {
			t.Errorf("without file and flags: %+v", r)
		}
	}
}

// All mistakes are found at once, each in one sentence with line, field, value and limit.
func TestMistakesInConfig(t *testing.T) {
	const v = "bellows_config: 1\n"
	for text, want := range map[string][]string{
		"":                        {"c: bellows_config is missing: must be 1, the version of the format"},
		"bellows_config: 2\n":     {"c:1: bellows_config 2: must be 1, the version of the format"},
		"- 1\n":                   {"c:1: must be a mapping of field names to values, but is a list"},
		"bellows_config: [\n":     {"c:1: must be YAML: did not find expected node content"},
		v + "---\na: 1\n":         {"c:2: must describe one daemon, but a second document begins"},
		v + "state: /tmp\n":       {"c:2: state: unknown field; must be one of bellows_config, memory, cpus,"},
		v + "keep-for: 1h\n":      {"c:2: keep-for: unknown field; must be keep_for"},
		v + "keep_for:\n":         {"c:2: keep_for empty: must be one value"},
		v + "keep_for: [1h]\n":    {"c:2: keep_for a list: must be one value"},
		v + "memory: 1000TiB\n":   {"c:2: memory 1000TiB: must be at most what this machine has"},
		v + "puff_ratio: 0.001":   {"c:2: puff_ratio 0.001: must be 0, or from 0.01 to 100"},
		v + "verbose: yes":        {"c:2: verbose yes: must be true or false"},
		v + "listen: 8443\n":      {"c:2: listen 8443: must be HOST:PORT, such as 127.0.0.1:8443"},
		v + "listen: a:70000\n":   {"c:2: listen a:70000: must be HOST:PORT"},
		v + "tls_key: key.pem\n":  {"c:2: tls_key key.pem: must be an absolute path"},
		v + "set: [a]":            {"c:2: set: must be a mapping of field names to values, but is a list"},
		v + "set: {fair: 1}":      {"c:2: set fair 1: must be POLICY.NAME=VALUE"},
		v + "set: {fair.nope: 1}": {`c:2: set: setting "fair.nope": must be one of `},
		v + "set: {nope.a: 1}":    {`c:2: set: setting "nope.a": must be POLICY.NAME with a policy of `},
		v + "queue_quota: {output: 1GiB}": {"c:2: queue_quota output 1GiB: must not be output, which is a quota of " +
			"users only"},
		v + "user_quota: {memory: 4Gx}":                     {`c:2: user_quota memory: memory "4Gx" has an unknown unit`},
		v + "user_quota:\n  memory: 1GiB\n  ada.memory: -1": {`c:4: user_quota ada.memory: memory "-1" is negative`},
		v + "user_quota: {running: 0}": {"c:2: user_quota running 0: must be a number of jobs " +
			"from 1 to 1000000"},
		v + "user_quota: {running: 1 hangs}": {"c:2: user_quota running 1 hangs: must be an amount, " +
			"perhaps with waits or refuses behind it, or none"},
		v + "user_quota: {ada.speed: 1}": {"c:2: user_quota ada.speed 1: must end with one of " +
			"memory, cpus, running, waiting, submissions, output"},
		v + "queue_quota: {.memory: 1GiB}": {"c:2: queue_quota .memory 1GiB: must have a name before " +
			"the dot, or no dot"},
		v + "queue_quota: {q.memory: 0B, a: 1}": {"c:2: queue_quota a 1: must end with one of ",
			"c:2: queue_quota q.memory 0B: must be above 0"},
		v + "set: {capacity.queues=default: 100%}": {"c:2: set capacity.queues=default 100%: must have a " +
			"name without ="},
		v + "set:\n  fair.reservations: true\n  fair.reservations: perhaps\n": {
			"c:4: set fair.reservations: written twice, first in line 3",
			`c:4: set: setting fair.reservations="perhaps": must be true or false`},
		"keep_jobs: 0\nkeep_jobs: 1\nmemory: 1\npolicy: nope\nspeed: 1\nkeep_output: 1x\nset: {fair.reservations: 7}\n": {
			"c:1: bellows_config is missing: must be 1, the version of the format",
			"c:2: keep_jobs: written twice, first in line 1",
			`c:3: memory "1" has no unit`,
			"c:4: policy nope: must be one of ",
			"c:5: speed: unknown field",
			`c:6: keep_output: memory "1x" has an unknown unit`,
			`c:7: set: setting fair.reservations="7": must be true or false`,
		},
	} {
		_, err := parseConfig("c", []byte(text))
		if err == nil || !fault.Is(err) {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := strings.Split(err.Error(), "\n")
		if len(got) != len(want) {
			t.Errorf("%q: %d mistakes, want %d:\n%v", text, len(got), len(want), err)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%q:\n got %s\nwant %s", text, got[i], want[i])
			}
		}
	}
}

// A file that is not there, or that other users could change, is refused; up names the first mistake and the number
// of others.
func TestConfigIsRefused(t *testing.T) {
	open := write(t, "bellows_config: 1\n")
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none.yaml"): "config: open ",
		t.TempDir():                             "must be a regular file",
		open: "is writable by everybody (mode 0666): must be writable by its owner " +
			"or its group only",
		"": `--config "": must be the path of a file`,
		write(t, "bellows_config: 1\ncpus: x\nverbose: 1\n"):                "and 1 more mistake: `bellows config check ",
		write(t, "bellows_config: 1\n#"+strings.Repeat("x", largestConfig)): "must be at most 1048576 bytes long",
	} {
		_, err := withArguments(t, "--config", path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			command.ExitCode(err) != command.WrongUsage {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

// FuzzParseConfig: whatever a file holds, all its mistakes are faults of one line in the order of lines, or its
// entries can be applied and show where they come from.
func FuzzParseConfig(f *testing.F) {
	f.Add(allSettings)
	f.Add("bellows_config: &a 1\nset: {<<: *a, ? [x] : 1}\n")
	f.Add("bellows_config: 1\nkeep_for: 1h\nkeep_for: -1h\nmemory: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parseConfig("c", []byte(text))
		if err != nil {
			last := 0
			mistakes, all := errors.AsType[*fault.All](err)
			if one, ok := err.(*fault.Fault); ok && !all {
				mistakes = &fault.All{one}
			}
			if mistakes == nil || len(*mistakes) == 0 {
				t.Fatalf("not a fault: %v", err)
			}
			for _, m := range *mistakes {
				if strings.Contains(m.Error(), "\n") || m.Line < last {
					t.Fatalf("not a fault of one line, after line %d: %q", last, m.Error())
				}
				last = m.Line
			}
			return
		}
		o := newUpOptions()
		if err := o.apply("c", entries); err != nil {
			t.Fatal(err)
		}
		given := 0
		for _, r := range o.rows() {
			if r.From != "default" {
				given++
			}
		}
		if given != len(entries) {
			t.Fatalf("%d entries, but %d rows of them: %v", len(entries), given, o.rows())
		}
	})
}

// A symbolic link of another user in the path of the file is refused, wherever it stands; own links are followed.
func TestConfigThroughLinks(t *testing.T) {
	file := write(t, "bellows_config: 1\n")
	dir := t.TempDir()
	link := func(to, name string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own, folder := link(file, "own"), link(filepath.Dir(file), "folder")
	paths := []string{own, filepath.Join(folder, filepath.Base(file)), link("own", "relative")}
	for _, path := range paths {
		if _, err := readConfig(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := readConfig(link("loop", "loop")); err == nil {
		t.Error("a loop of links was read")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a link of another user")
	}
	for _, path := range []string{own, folder} {
		if err := os.Lchown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range paths {
		if _, err := readConfig(path); err == nil ||
			!strings.Contains(err.Error(), "of user 12345, who could point it elsewhere: name the file itself") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
