package demo

import (
	"flag"
	"os"
	"testing"

	"github.com/bellows-rm/bellows/node/agent"
)

// TestMain makes the test program also the supervisor of the containers that it starts, and the program inside them.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == agent.SuperviseCommand {
		os.Exit(agent.Supervise(os.Args[2:]))
	}
	flag.Parse()
	os.Exit(m.Run())
}
