//go:build attack

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/testcert"
	"github.com/bellows-rm/bellows/live/store"
)

var (
	schemathesis   = flag.String("schemathesis", "", "path of the program st, which internal/attack/run installs")
	attackExamples = flag.Int("attack-examples", 40,
		"how many random requests of each operation and role TestAttack sends, in addition to those at the borders of "+
			"the schema")
	attackSeed = flag.Int("attack-seed", 1, "what the requests of TestAttack come from")
)

// attackTime is how long all requests may take: on a busy machine those that are left are not sent, and the output
// says so.
const attackTime = 6 * time.Minute

// secretOf is in every text of the jobs that no role but an operator may see.
const secretOf = "s3cret"

// TestAttack sends the requests that Schemathesis makes of the document of the API, valid and invalid ones, to a
// daemon of root: over TLS, with a token of each scope, each of another user, at the same time. See internal/attack.
func TestAttack(t *testing.T) {
	needControlGroups(t)
	a := startAttacked(t)
	roles := []struct{ name, user, scope string }{{"reader", "nobody", "read"}, {"submitter", "daemon", "submit"},
		{"admin", "root", "admin"}}
	for _, r := range roles {
		a.bellows("token", "create", "--user", r.user, "--scope", r.scope, "--expires", "1d", "--file",
			filepath.Join(a.dir, r.name))
	}
	a.submit(append(a.env, "SECRET="+secretOf), secretOf)
	a.submit(append(os.Environ(), "BELLOWS_SERVER="+a.url, "BELLOWS_CA_FILE="+a.authority, "BELLOWS_TOKEN_FILE="+
		filepath.Join(a.dir, "submitter")), "own")

	// A watch never ends by itself: its first event is enough. Every user may read the arguments of a process, and no
	// other user its environment.
	settings := `max-stream-events = 1
headers = { Authorization = "Bearer ${ATTACK_TOKEN}" }

[[operations]]
include-operation-id = "watch"
request-timeout = 1.0

[checks.negative_data_rejection]
expected-statuses = ["4xx", "5xx"] # 410, too: a lease that is left out has ended
`
	if err := os.WriteFile(filepath.Join(a.dir, "schemathesis.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), attackTime)
	defer cancel()
	began, cases := time.Now(), make([]int, len(roles))
	var all sync.WaitGroup
	for i, r := range roles {
		all.Go(func() { cases[i] = a.attack(ctx, r.name) })
	}
	all.Wait()
	sum := 0
	for i, n := range cases {
		t.Logf("%s: %d cases", roles[i].name, n)
		sum += n
	}
	t.Logf("%d cases in %v, seed %d", sum, time.Since(began).Round(time.Second), *attackSeed)
	a.survived()
}

// attacked is the daemon under attack.
type attacked struct {
	t         *testing.T
	dir       string   // its state directory
	env       []string // of commands over its socket
	url       string   // on the network
	authority string   // of its certificate
	jobs      []string // ids of jobs that exist
}

func startAttacked(t *testing.T) *attacked {
	dir, err := os.MkdirTemp("", "bellows") // The name of a socket must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+store.Mark)) })
	a := &attacked{t: t, dir: dir, env: append(os.Environ(), "BELLOWS_STATE="+dir)}
	certificate, key, err := testcert.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	a.authority = certificate
	a.bellows("up", "--detach", "--memory", "512MiB", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key",
		key)
	t.Cleanup(func() { a.bellows("down", "--force") })
	address := regexp.MustCompile(`network: (\S+),`).FindStringSubmatch(a.bellows("status"))
	if address == nil {
		t.Fatal("the status does not say where the daemon listens")
	}
	a.url = "https://" + address[1]
	return a
}

// bellows runs a command over the socket, and returns what it prints.
func (a *attacked) bellows(args ...string) string { return a.as(a.env, args...) }

// as runs a command in an environment.
func (a *attacked) as(env []string, args ...string) string {
	a.t.Helper()
	cmd := exec.Command("bellows", args...)
	cmd.Env, cmd.Dir = env, "/"
	out, err := cmd.Output()
	if err != nil {
		a.t.Errorf("bellows %q: %v", args, err)
	}
	return string(out)
}

// submit submits a job that runs, one that fails and one that waits for ever, and makes two pools. Each of their
// texts has a word.
func (a *attacked) submit(env []string, word string) {
	for _, script := range []string{"echo $0 >&2; exec sleep 1000", "echo $0; exit 3", "true"} {
		args := []string{"run", "-d", "--name", word, "--queue", word, "--app", word, "--cpus", "0.01", "--memory", "4MiB"}
		if script == "true" { // more memory than is left while the first runs
			args = append(args, "--memory", "510MiB")
		}
		a.jobs = append(a.jobs, strings.TrimSpace(a.as(env, append(args, "--", "sh", "-c", script, word)...)))
	}
	for _, pool := range []string{"p0", "p1"} {
		a.as(env, "pool", "create", pool, "--max", "2", "--memory", "4MiB", "--", "true", word)
	}
}

// attack sends all requests of one role, and returns how many there were.
func (a *attacked) attack(ctx context.Context, role string) (cases int) {
	token, err := os.ReadFile(filepath.Join(a.dir, role))
	if err != nil {
		a.t.Error(err)
		return 0
	}
	parts, err := filepath.Abs("../../internal/attack")
	if err != nil {
		a.t.Error(err)
		return 0
	}
	args := []string{"run", a.url + "/openapi.json", "--tls-verify", a.authority,
		"--seed", strconv.Itoa(*attackSeed), "--max-examples", strconv.Itoa(*attackExamples), "--request-timeout", "60",
		"--max-response-time", "60", "--generation-database", "none", "--no-color", "--continue-on-failure",
		// Not all that must hold of a submission is in the schema: accepted, in hooks.py, is the check of those that are
		// valid. And the address /v1/jobs/bulk is that of a job, too, for methods that it does not have itself.
		"--checks", "all"}
	excluded := "positive_data_acceptance,unsupported_method,allow_header_conformance"
	if role == "admin" {
		args = append(args, "--exclude-operation-id", "shutdown", "--exclude-checks", excluded)
	} else {
		// The daemon refuses 20 requests without a token in a second. One role alone, which has access to everything, tries
		// what is answered without one.
		args = append(args, "--generation-with-security-parameters", "false", "--exclude-checks", excluded+",ignored_auth")
	}
	cmd := exec.CommandContext(ctx, *schemathesis, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // after which it says what it has found
	cmd.WaitDelay = 30 * time.Second
	cmd.Dir = a.dir // for its configuration, and for what it leaves
	cmd.Env = append(os.Environ(), "SCHEMATHESIS_HOOKS=hooks", "PYTHONPATH="+parts, "PYTHONDONTWRITEBYTECODE=1",
		"REQUESTS_CA_BUNDLE="+a.authority, "ATTACK_TOKEN="+strings.TrimSpace(string(token)), "ATTACK_ROLE="+role,
		"ATTACK_JOBS="+strings.Join(a.jobs, ","), "ATTACK_SECRET="+secretOf)
	out, err := cmd.CombinedOutput()
	if found := regexp.MustCompile(`(?m)^  (\d+) generated`).FindSubmatch(out); found != nil {
		cases, _ = strconv.Atoi(string(found[1]))
	}
	if ctx.Err() != nil && !bytes.Contains(out, []byte("found ")) && cases > 0 {
		a.t.Logf("%s: cut off after %v", role, attackTime)
	} else if err != nil || cases == 0 {
		last, _ := os.ReadFile(filepath.Join(a.dir, role+".last"))
		a.t.Errorf("%s: %d cases, %v, %v, last request %s:\n%s", role, cases, err, ctx.Err(), last, out)
	}
	return cases
}

// survived checks that the daemon serves, and that its log has neither a bug, nor a token.
func (a *attacked) survived() {
	a.t.Helper()
	a.bellows("status")
	log, err := os.ReadFile(filepath.Join(a.dir, "daemon.log"))
	if err != nil {
		a.t.Error(err)
	}
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("bug of bellows")) || bytes.Contains(line, []byte("level=ERROR")) ||
			regexp.MustCompile(`bellows_\d+_[a-z2-7]{52}`).Match(line) {
			a.t.Errorf("the log has %s", line)
		}
	}
}
