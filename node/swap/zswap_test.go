package swap

import (
	"os"
	"path/filepath"
	"testing"
)

// TestZswap turns zswap on and off on a fake machine.
func TestZswap(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	m := Machine{Root: t.TempDir()}
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(m.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const enabled, compressor, swaps = "sys/module/zswap/parameters/enabled", "sys/module/zswap/parameters/compressor",
		"proc/swaps"
	const none = "Filename\tType\tSize\tUsed\tPriority\n"
	l := NewLedger(m, t.TempDir())
	is := func(on, ours bool, how string) {
		t.Helper()
		z, err := l.Zswap()
		if err != nil || z == nil || z.Enabled != on || z.Ours != ours || z.Compressor != how {
			t.Errorf("zswap is %+v, %v; want enabled %v, ours %v, %s", z, err, on, ours, how)
		}
	}
	put("proc/sys/kernel/random/boot_id", "a\n")
	put(swaps, none)
	refused(t, l.TurnOnZswap(""), "this kernel has none")
	if z, err := l.Zswap(); z != nil || err != nil {
		t.Errorf("a kernel without zswap has %+v, %v", z, err)
	}
	put(enabled, "N\n")
	put(compressor, "lzo\n")
	refused(t, l.TurnOnZswap(""), "there is none: `bellows swap create --size 4GiB` first")
	put(swaps, none+"/dev/zram0 partition 1024 0 100\n")
	refused(t, l.TurnOnZswap(""), "there is none")
	put(swaps, none+"/swapfile file 1024 0 -2\n")
	refused(t, l.TurnOffZswap(), "was not turned on")
	is(false, false, "lzo")
	if err := l.TurnOnZswap("zstd"); err != nil {
		t.Fatal(err)
	}
	is(true, true, "zstd")
	refused(t, l.TurnOnZswap(""), "is on already")
	if err := l.TurnOffZswap(); err != nil {
		t.Fatal(err)
	}
	is(false, false, "lzo")
	// After a reboot the setting is lost, and zswap that others turn on is theirs.
	if err := l.TurnOnZswap(""); err != nil {
		t.Fatal(err)
	}
	put("proc/sys/kernel/random/boot_id", "b\n")
	is(true, false, "lzo")
	refused(t, l.TurnOffZswap(), "was not turned on")
}
