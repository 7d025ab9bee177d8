package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Adopt opens a group that another program made, such as a container runtime. place is its path below the mount
// points. Adopt makes nothing and turns nothing on: the group has the controllers that its maker gave it, and Has says
// which. need lists those without which it is of no use. Who made the group removes it. The error is ErrGone if there
// is no such group, and ErrUnsupported if it lacks a controller. A group that this process is in is refused: it could
// freeze itself.
func (h *Host) Adopt(place string, need ...Controller) (*Group, error) {
	if !path.IsAbs(place) || path.Clean(place) != place || place == "/" {
		return nil, fmt.Errorf("group %q: must be the path of a group below the mount points, such as /kubepods.slice", place)
	}
	g := h.child(place)
	dirs, version, unified := map[Controller]string{}, map[Controller]Version{}, ""
	if is, err := there(g.unified); err != nil {
		return nil, fmt.Errorf("adopt group %s: %w", place, err)
	} else if is {
		unified = g.unified
	}
	for _, c := range Controllers() {
		dir, ok := g.dirs[c]
		if !ok {
			continue
		}
		is, err := there(dir)
		if err != nil {
			return nil, fmt.Errorf("adopt group %s: %w", place, err)
		}
		if h.serves[c].Version == V2 && slices.Contains(switchable, c) {
			is = is && slices.Contains(readWords(filepath.Join(dir, "cgroup.controllers")), string(c))
		}
		if !is {
			continue
		}
		if h.serves[c].holds(dir) {
			return nil, fmt.Errorf("group %s: must not be one that this process is in", place)
		}
		dirs[c], version[c] = dir, h.serves[c].Version
	}
	switch kind := slurp(unified, "cgroup.type"); {
	case len(dirs) == 0:
		return nil, fmt.Errorf("adopt group %s: %w", place, ErrGone)
	case unified != "" && h.unified.holds(unified):
		return nil, fmt.Errorf("group %s: must not be one that this process is in", place)
	case strings.HasPrefix(kind, "threaded"):
		return nil, fmt.Errorf("group %s: is a group of threads, whose memory is that of the group above it: %w", place,
			ErrUnsupported)
	}
	for _, c := range sorted(need) {
		if version[c] == 0 {
			return nil, fmt.Errorf("group %s: its maker gave it no controller %s: %w", place, c, ErrUnsupported)
		}
	}
	return newGroup(h, path.Base(place), dirs, version, unified)
}

// holds reports whether this process was in the group of a directory, or below it, when the hierarchy was found.
func (h Hierarchy) holds(dir string) bool {
	return h.Own == dir || strings.HasPrefix(h.Own, dir+"/")
}

// there reports whether a directory exists; "" does not.
func there(dir string) (bool, error) {
	if dir == "" {
		return false, nil
	}
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
