package cgroup

import (
	"fmt"
	"io"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// mount is one cgroup file system as mountinfo lists it.
type mount struct {
	version     Version
	root        string // The group that is mounted; "/" except in some containers.
	dir         string
	controllers []Controller // Version 1 only.
}

// parseMounts returns the cgroup file systems of a mountinfo file.
func parseMounts(r io.Reader) ([]mount, error) {
	infos, err := mountinfo.GetMountsFromReader(r, mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, err
	}
	var out []mount
	for _, info := range infos {
		m := mount{version: V2, root: info.Root, dir: info.Mountpoint}
		if info.FSType == "cgroup" {
			m.version = V1
			for option := range strings.SplitSeq(info.VFSOptions, ",") {
				if c, ok := legacyNames[option]; ok {
					m.controllers = append(m.controllers, c)
				}
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// ownPaths is where a process is: one path per version 1 controller, and one in version 2.
type ownPaths struct {
	legacy  map[Controller]string
	unified string
}

// parseOwn parses /proc/self/cgroup: lines of id:controllers:path. Version 2 has id 0 and no controllers. A path may
// contain colons.
func parseOwn(text string) (ownPaths, error) {
	own := ownPaths{legacy: map[Controller]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			return ownPaths{}, fmt.Errorf("line %q is not id:controllers:/path", line)
		}
		dir := strings.TrimSuffix(parts[2], " (deleted)")
		if parts[0] == "0" && parts[1] == "" {
			own.unified = dir
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			if c, ok := legacyNames[name]; ok {
				own.legacy[c] = dir
			}
		}
	}
	return own, nil
}
