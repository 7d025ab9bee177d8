package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is the subtree of groups that is ours. It is a group itself, so that limits on it bound all its groups together,
// but it contains no processes.
type Root struct {
	*Group
	place string
	// children is the version of each controller that groups below the root have.
	children map[Controller]Version
}

const (
	prefix = "bellows-"
	// leaf is the group for processes that prevented turning controllers on, and for those that Join: in version 2 no
	// controllers can be turned on for the children of a group that contains processes.
	leaf = prefix + "self"
)

// advice says how an ordinary user gets a subtree.
const advice = "run it as root, or as `systemd-run --user --scope -p Delegate=yes COMMAND`"

// Root makes the subtree called name, or finds it if it exists. need lists the controllers without which the subtree is
// of no use. In version 1 and on hybrid hosts the subtree is at the top of every hierarchy. In version 2 it is below
// our own group if that was delegated to us, else, for root, at the top. If turning controllers on requires it, Root
// moves all processes of our own group into a leaf of it. If the subtree cannot be had, the error is one sentence that
// says what is missing and how to get it.
func (h *Host) Root(name string, need ...Controller) (*Root, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	site, err := h.Site(need...)
	if err != nil {
		return nil, err
	}
	return h.openRoot(path.Join(site.Above, prefix+name), need)
}

// OpenRoot finds the subtree at place, as Place returned it, even if this process now runs elsewhere in the tree. It
// fails with ErrGone if the subtree no longer exists.
func (h *Host) OpenRoot(place string, need ...Controller) (*Root, error) {
	clean, err := h.there(place)
	if err != nil {
		return nil, err
	}
	return h.openRoot(clean, need)
}

// Join moves this process into the leaf beside a subtree that it has opened, where systemd delegated the group of
// version 2 above both. systemd removes a scope with all groups below as soon as no process is in it: from a scope of
// its own, this process would lose the subtree once the last program in it has ended that another process has started.
func (r *Root) Join() error {
	own, above := r.host.unified.Own, filepath.Dir(r.unified)
	if r.version[Memory] != V2 || above == r.host.unified.Mount || own == above || own == filepath.Join(above, leaf) {
		return nil
	}
	if err := moveToLeaf(above, os.Getpid()); err != nil {
		return fmt.Errorf("join group %s: %w", above, err)
	}
	return nil
}

// base returns the path of the root below the mount points, the same in every hierarchy.
func (h *Host) base() (string, error) {
	if h.legacy {
		for _, c := range Controllers() {
			hierarchy, ok := h.serves[c]
			if !ok || hierarchy.Version != V1 {
				continue
			}
			switch err := writable(hierarchy.Mount); {
			case errors.Is(err, unix.EROFS):
				return "", readOnly(hierarchy.Mount)
			case err != nil:
				return "", &NeedError{"this user cannot make groups in " + hierarchy.Mount, err,
					"run it as root, version 1 delegates nothing to ordinary users"}
			}
		}
		return "/", nil
	}
	u := h.unified
	own := u.Own
	if filepath.Base(own) == leaf {
		own = filepath.Dir(own)
	}
	errOwn := ownable(own)
	if errOwn == nil && own != u.Mount && (delegated(own) || writable(u.Mount) != nil) {
		return relativeTo(u.Mount, own), nil
	}
	errTop := ownable(u.Mount)
	if errTop == nil {
		return "/", nil
	}
	if errors.Is(errTop, unix.EROFS) {
		return "", readOnly(u.Mount)
	}
	return "", &NeedError{"the group " + relativeTo(u.Mount, own) + " was not delegated to this user", errOwn, advice}
}

func readOnly(dir string) error {
	return &NeedError{dir + " is mounted read-only", unix.EROFS,
		"start the container with writable cgroups (privileged, with a cgroup namespace of its own), or run outside of it"}
}

// ownable reports whether this process may make groups in dir, move processes there and turn controllers on.
func ownable(dir string) error {
	if err := writable(dir); err != nil {
		return err
	}
	for _, file := range []string{"cgroup.procs", "cgroup.subtree_control"} {
		if err := unix.Access(filepath.Join(dir, file), unix.W_OK); err != nil {
			return err
		}
	}
	return nil
}

// delegated reads the mark that systemd leaves on groups that it does not manage. Only root needs the mark: an ordinary
// user can write to a group that was delegated to the user (and a user's own systemd leaves no mark).
func delegated(dir string) bool {
	for _, mark := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, mark, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

func relativeTo(mount, dir string) string {
	below, err := filepath.Rel(mount, dir)
	if err != nil {
		return "/"
	}
	return path.Clean("/" + below)
}

// child returns the group at place in every hierarchy, with the controllers that the machine has.
func (h *Host) child(place string) *Group {
	g := &Group{host: h, name: path.Base(place), dirs: map[Controller]string{}, version: map[Controller]Version{},
		slow: make(chan struct{}, 1)}
	for c, hierarchy := range h.serves {
		g.version[c] = hierarchy.Version
		g.dirs[c] = filepath.Join(hierarchy.Mount, place)
	}
	// Together with version 1, version 2 is useful for pressure but not needed.
	if h.unified.Version == V2 && (!h.legacy || writable(h.unified.Mount) == nil) {
		g.unified = filepath.Join(h.unified.Mount, place)
	}
	return g
}

// openRoot makes the missing parts of the root at place and turns controllers on.
func (h *Host) openRoot(place string, need []Controller) (*Root, error) {
	g := h.child(place)
	if g.unified != "" {
		if err := enable(filepath.Dir(g.unified), filepath.Join(h.unified.Mount, path.Dir(place)) != h.unified.Mount ||
			namespaced(h.unified.Mount)); err != nil {
			return nil, err
		}
	}
	if _, err := g.makeDirs(); err != nil {
		return nil, err
	}
	if err := inheritCharges(g); err != nil {
		return nil, err
	}
	if g.unified != "" {
		if err := enable(g.unified, false); err != nil {
			return nil, err
		}
	}
	site, err := h.site(path.Dir(place), h.turnedOn(place), need)
	if err != nil {
		_ = removeAll(g.tree()) // if it is empty
		return nil, err
	}
	r := &Root{place: place, children: site.Has}
	maps.DeleteFunc(g.version, func(c Controller, _ Version) bool { return site.Has[c] == 0 })
	maps.DeleteFunc(g.dirs, func(c Controller, _ string) bool { return site.Has[c] == 0 })
	r.Group, err = newGroup(h, path.Base(place), g.dirs, g.version, g.unified)
	return r, err
}

// namespaced reports whether a mount shows only a part of the hierarchy: the real top has no cgroup.type.
func namespaced(mount string) bool {
	_, err := os.Stat(filepath.Join(mount, "cgroup.type"))
	return err == nil
}

// inheritCharges makes version 1 charge groups below this one to it, too; kernels before 5.11 did not do that by
// default.
func inheritCharges(g *Group) error {
	if g.version[Memory] != V1 || strings.TrimSpace(slurp(g.dirs[Memory], "memory.use_hierarchy")) != "0" {
		return nil
	}
	if err := writeFile(filepath.Join(g.dirs[Memory], "memory.use_hierarchy"), "1"); err != nil {
		return fmt.Errorf("make group: %w", err)
	}
	return nil
}

// enable turns on, for the children of dir, all controllers that dir has. If evict is set, it first moves the processes
// of dir into a leaf. The order matters: while dir contains processes, the kernel refuses some controllers, but accepts
// others and makes dir the top of a tree of threads, where the refused controllers are not available any more.
func enable(dir string, evict bool) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	have := readWords(file)
	var wanted []string
	for _, c := range readWords(filepath.Join(dir, "cgroup.controllers")) {
		if slices.Contains(switchable, Controller(c)) && !slices.Contains(have, c) {
			wanted = append(wanted, c)
		}
	}
	if len(wanted) > 0 && evict {
		if err := vacate(dir); err != nil {
			return err
		}
	}
	for _, c := range wanted {
		if err := writeFile(file, "+"+c); errors.Is(err, ErrBusy) {
			return fmt.Errorf("the group %s contains processes, so the kernel turns on no controllers for its children: "+
				"%w: %s", dir, err, advice)
		}
		// Other failures mean that this controller is not available; Root reports that if the controller is needed.
	}
	return nil
}

// vacate moves all processes of dir into its leaf. Processes may fork meanwhile, so it looks again.
func vacate(dir string) error {
	for range 20 {
		pids := parseProcs(slurp(dir, "cgroup.procs"))
		if len(pids) == 0 {
			return nil
		}
		if err := moveToLeaf(dir, pids...); err != nil {
			return fmt.Errorf("make room in group %s: %w", dir, err)
		}
	}
	return fmt.Errorf("make room in group %s: processes come faster than they can be moved: %w", dir, ErrBusy)
}

// moveToLeaf moves processes into the leaf of dir.
func moveToLeaf(dir string, pids ...int) error {
	to := filepath.Join(dir, leaf)
	if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, pid := range pids {
		err := writeFile(filepath.Join(to, "cgroup.procs"), fmt.Sprint(pid))
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// Place is the location of the root, for OpenRoot.
func (r *Root) Place() string { return r.place }

// Has reports whether c bounds and measures groups below the root, and in which version.
func (r *Root) Has(c Controller) (v Version, ok bool) {
	v, ok = r.children[c]
	return v, ok
}

// Create makes a group, or completes one whose maker was killed. name is a file name. The error is fs.ErrExist if a
// complete group of that name exists.
func (r *Root) Create(name string) (*Group, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	g := r.child(name, r.children)
	if g.whole() == nil {
		return nil, fmt.Errorf("make group %s: %w", name, fs.ErrExist)
	}
	made, err := g.makeDirs()
	if err != nil {
		for _, dir := range slices.Backward(made) {
			_ = unix.Rmdir(dir)
		}
		return nil, err
	}
	return r.group(g)
}

// group returns a child whose directories exist.
func (r *Root) group(child *Group) (*Group, error) {
	g, err := newGroup(r.host, child.name, child.dirs, child.version, child.unified)
	if err == nil {
		g.findInner()
	}
	return g, err
}

// Open finds a group that Create made, perhaps in another process. The error is ErrGone if there is none. To know that
// it is the same group, compare Identity with the stored one.
func (r *Root) Open(name string) (*Group, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	g := r.child(name, r.children)
	if err := g.whole(); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open group %s: %w: %w", name, ErrGone, err)
	} else if err != nil {
		return nil, fmt.Errorf("open group %s: %w", name, err)
	}
	return r.group(g)
}

// List returns the names of the groups below the root, sorted.
func (r *Root) List() ([]string, error) {
	entries, err := os.ReadDir(r.dir())
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// checkName accepts directory names that cannot be mistaken for files of the kernel: all these files have a dot after
// the name of a controller.
func checkName(name string) error {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return fmt.Errorf("group name %q: must be letters, digits, - and _", name)
	}
	return nil
}
