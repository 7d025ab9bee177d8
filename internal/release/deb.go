package main

import (
	"bytes"
	"crypto/md5"
	"embed"
	"fmt"
	"strings"
)

//go:embed units
var units embed.FS

// afterwards tells systemd of units that came, changed or went, where it runs. Nothing is enabled or started: what
// share of the machine the daemon manages is the administrator's decision.
const afterwards = `#!/bin/sh
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
`

// before ends the daemon of the system when the package is removed, and no job: `bellows down --force` does both.
const before = `#!/bin/sh
set -e
[ "$1" != remove ] || [ ! -d /run/systemd/system ] || systemctl stop bellows.service
`

// deb is a Debian package: an archive of ar(1) with three members, as deb(5) has it.
func (r *release) deb(arch string, program []byte) (name string, packed []byte, err error) {
	files := []file{{"usr/bin/bellows", 0o755, program}}
	for _, whose := range []string{"system", "user"} {
		text, err := units.ReadFile("units/" + whose + ".service")
		if err != nil {
			return "", nil, err
		}
		files = append(files, file{"usr/lib/systemd/" + whose + "/bellows.service", 0o644, text})
	}
	for _, f := range r.common {
		if f, err = inDebian(f); err != nil {
			return "", nil, err
		}
		files = append(files, f)
	}
	var sums strings.Builder
	size := 0
	for _, f := range files {
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.text), f.path)
		size += (len(f.text) + 1023) / 1024
	}
	control := fmt.Sprintf(`Package: bellows
Version: %s
Architecture: %s
Maintainer: The bellows maintainers
Installed-Size: %d
Section: admin
Priority: optional
Homepage: https://github.com/bellows-rm/bellows
Description: elastic resource manager for memory-hungry batch work
 It starts a task with less memory than its ideal when the job then ends no
 later than it would after waiting, and suspends what outgrows the machine
 instead of killing it. The daemon is not started: enable bellows.service of
 the system, or of a user.
`, r.version, arch, size)
	about, err := tarball([]file{{"control", 0o644, []byte(control)}, {"md5sums", 0o644, []byte(sums.String())},
		{"prerm", 0o755, []byte(before)}, {"postinst", 0o755, []byte(afterwards)}, {"postrm", 0o755, []byte(afterwards)}},
		"./", r.date)
	if err != nil {
		return "", nil, err
	}
	data, err := tarball(files, "./", r.date)
	if err != nil {
		return "", nil, err
	}
	b := bytes.NewBufferString("!<arch>\n")
	members := []file{{"debian-binary", 0o644, []byte("2.0\n")}, {"control.tar.gz", 0o644, about},
		{"data.tar.gz", 0o644, data}}
	for _, member := range members {
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.path, r.date.Unix(), 0, 0, "100644", len(member.text))
		b.Write(member.text)
		if len(member.text)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return fmt.Sprintf("bellows_%s_%s.deb", r.version, arch), b.Bytes(), nil
}

// inDebian returns a file of an archive where Debian wants it, and compressed where Debian wants that.
func inDebian(f file) (_ file, err error) {
	const doc = "usr/share/doc/bellows/"
	switch dir, name, _ := strings.Cut(f.path, "/"); {
	case f.path == "LICENSE":
		f.path = doc + "copyright"
	case f.path == "CHANGELOG.md":
		f.path = doc + "changelog.gz"
	case dir == "man":
		f.path = "usr/share/man/" + name + ".gz"
	case dir == "completions":
		f.path = map[string]string{
			"bellows":      "usr/share/bash-completion/completions/",
			"bellows.fish": "usr/share/fish/vendor_completions.d/",
			"_bellows":     "usr/share/zsh/vendor-completions/",
		}[name] + name
	default:
		f.path = doc + f.path
	}
	if strings.HasSuffix(f.path, ".gz") {
		f.text, err = squeeze(f.text)
	}
	return f, err
}
