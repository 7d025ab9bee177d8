package main

import (
	"testing"

	"github.com/bellows-rm/bellows/door/cli/command/commandtest"
)

// TestFlagErrors: the error of a wrong value is in terms of the flag, never of the function that reads it.
func TestFlagErrors(t *testing.T) {
	if refused := commandtest.FlagErrors(t, newTree()); refused < 200 {
		t.Errorf("flags refused %d values, want at least 200", refused)
	}
}

// TestHelpIsShort: what is longer than 12 lines is in docs.
func TestHelpIsShort(t *testing.T) { commandtest.Help(t, newTree()) }
