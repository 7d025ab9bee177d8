//go:build attack

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/executor"
)

var generators = flag.String("generators", "",
	"folder of the programs python and openapi-python-client, which internal/clients/run installs")

// TestGeneratedClients generates clients from the document that a daemon serves, with the commands of
// docs/reference/api.md, and uses them with that daemon. See internal/clients.
func TestGeneratedClients(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("long: run without -short")
	case *generators == "":
		t.Skip("needs generators of clients: run make clients")
	}
	needControlGroups(t)
	page, err := os.ReadFile("../../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	a := startAttacked(t)
	a.bellows("run", "-d", "--memory", "4MiB", "--", "sleep", "1000")
	a.bellows("pool", "create", "own", "--max", "2", "--memory", "4MiB", "--", "true")
	socket := filepath.Join(a.dir, "bellows.sock")
	work := t.TempDir()
	document := servedAt(t, socket)
	if err := os.WriteFile(filepath.Join(work, "openapi.json"), document, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum", "main.go", "client.py"} {
		text, err := os.ReadFile(filepath.Join("../../internal/clients", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(work, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := func(command string) (string, error) {
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Dir, cmd.WaitDelay = work, time.Second
		cmd.Env = append(os.Environ(), "PATH="+*generators+":"+os.Getenv("PATH"), "GOWORK=off", "PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, tt := range []struct {
		language, generate, use string
		leftOut                 string // said once for each operation of messages, which the generator leaves out
	}{
		{"Python", "openapi-python-client generate --path openapi.json --meta none --output-path bellows",
			"python client.py ", "Unsupported content type " + executor.MediaType},
		{"Go", "go tool oapi-codegen -generate types,client,skip-prune -package bellows -o bellows/bellows.go openapi.json",
			"go run . ", ""},
	} {
		t.Run(tt.language, func(t *testing.T) {
			if !bytes.Contains(page, []byte("\n"+tt.generate+"\n")) {
				t.Errorf("docs/reference/api.md does not say %s", tt.generate)
			}
			said, err := run(tt.generate)
			if err != nil {
				t.Fatalf("%s: %v\n%s", tt.generate, err, said)
			}
			if tt.leftOut == "" && said != "" || tt.leftOut != "" && strings.Count(said, "WARNING") != strings.Count(said,
				tt.leftOut) {
				t.Errorf("%s:\n%s", tt.generate, said)
			}
			out, err := run(tt.use + socket)
			if want := fmt.Sprintf("the client in %s is usable\n", tt.language); err != nil || out != want {
				t.Errorf("%s: %v\n%s", tt.use, err, out)
			}
		})
	}
	a.survived()
}

// servedAt returns the document of the API of a daemon.
func servedAt(t *testing.T, socket string) []byte {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	r, err := c.Get("http://bellows/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
