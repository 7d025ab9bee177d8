package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// programsDisk makes a file system in a file in dir, with the programs and directories of the host at paths, and the
// libraries that they need, and a shell. It is a root for chroot, with places for proc, sys, dev and tmp.
func programsDisk(dir string, paths []string) (file string, err error) {
	root := filepath.Join(dir, "programs")
	for _, place := range []string{"proc", "sys", "dev", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, place), 0o755); err != nil {
			return "", err
		}
	}
	var binaries []string
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && isBinary(name) {
				binaries = append(binaries, name)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	needed, _ := exec.Command("ldd", binaries...).Output() // fails if one is static
	followed := []string{"/bin/sh"}
	for _, found := range library.FindAllSubmatch(needed, -1) {
		followed = append(followed, filepath.Clean(string(found[1])))
	}
	if err := copyTo(root, "-c", paths); err != nil {
		return "", err
	}
	if err := copyTo(root, "-ch", followed); err != nil {
		return "", err
	}
	file = filepath.Join(dir, "programs.ext4")
	made := exec.Command("mke2fs", "-q", "-t", "ext4", "-d", root, file, "1G")
	if out, err := made.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mke2fs: %w: %s", err, out)
	}
	return file, os.RemoveAll(root)
}

// copyTo copies files and directories of the host to the same paths below root. flag is that of tar: -ch copies what
// links lead to, -c the links.
func copyTo(root, flag string, paths []string) error {
	const script = `to=$1; shift; tar -C / "$@" | tar -x -C "$to"`
	args := []string{"-c", script, "sh", root, flag}
	for _, path := range paths {
		args = append(args, "."+path)
	}
	if out, err := exec.Command("sh", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("copy programs to %s: %w: %s", root, err, out)
	}
	return nil
}

// library finds the paths of libraries in the output of ldd.
var library = regexp.MustCompile(`(?m)^\t(?:\S+ => )?(/\S+) \(0x`)

// isBinary reports whether a file begins as ELF files do.
func isBinary(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = f.Read(magic[:])
	return err == nil && string(magic[:]) == "\x7fELF"
}
