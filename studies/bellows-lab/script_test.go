package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bellows-rm/bellows/door/cli/command/commandtest"
	"github.com/bellows-rm/bellows/internal/testfile"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bellows-lab": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", Cmds: commandtest.Commands, UpdateScripts: testfile.Rewriting(), RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
	})
}
