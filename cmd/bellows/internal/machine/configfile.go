package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/format/form"
)

// configVersion is the version of the format of configuration files, which their field bellows_config has.
const configVersion = "1"

// largestConfig is the largest size of a configuration file, bytes.
const largestConfig = 1 << 20

// entry is the value of a setting in a configuration file.
type entry struct {
	name string // of the setting's row
	flag string
	text string // for the flag
	line int
}

// readConfig reads a configuration file. The error is a *fault.All if the file has mistakes; see parseConfig.
func readConfig(path string) ([]entry, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer file.Close()
	if err := checkLinks(path); err != nil {
		return nil, err
	}
	if err := checkConfigFile(file); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, largestConfig+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("config: %w", err)
	case len(text) > largestConfig:
		return nil, fault.At(path, 0, "must be at most %d bytes long", largestConfig)
	}
	return parseConfig(path, text)
}

// checkLinks refuses a path with a symbolic link of another user, who could make it lead to any file of root.
func checkLinks(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	names := func(path string) []string {
		return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
	}
	at, left := "/", names(abs)
	for links := 0; len(left) > 0; {
		next := filepath.Join(at, left[0])
		var st unix.Stat_t
		if err := unix.Lstat(next, &st); err != nil {
			return fmt.Errorf("config: %w", &fs.PathError{Op: "stat", Path: next, Err: err})
		}
		left = left[1:]
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			at = next
			continue
		}
		if st.Uid != 0 && st.Uid != uint32(os.Geteuid()) {
			return fault.At(path, 0,
				"goes through the symbolic link %s of user %d, who could point it elsewhere: name the file itself", next, st.Uid)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return fmt.Errorf("config: %w", err)
		}
		if links++; links > mostLinks {
			return fault.At(path, 0, "goes through more than %d symbolic links", mostLinks)
		}
		if left = append(names(target), left...); filepath.IsAbs(target) {
			at = "/"
		}
	}
	return nil
}

// mostLinks is the largest number of symbolic links in a path, as in the kernel.
const mostLinks = 40

// checkConfigFile refuses a file that other users could change: its settings decide what the daemon does with their
// jobs.
func checkConfigFile(file *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return &fs.PathError{Op: "stat", Path: file.Name(), Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fault.At(file.Name(), 0, "must be a regular file")
	case st.Uid != 0 && st.Uid != uint32(os.Geteuid()):
		return fault.At(file.Name(), 0, "belongs to user %d: must belong to root or to the user of the daemon", st.Uid)
	case st.Mode&unix.S_IWOTH != 0:
		return fault.At(file.Name(), 0,
			"is writable by everybody (mode %04o): must be writable by its owner or its group only", st.Mode&0o7777)
	}
	return nil
}

// parseConfig parses a configuration file, whose name is used in errors. It tries each value on the setting. The
// error is a *fault.All with all mistakes, or a *fault.Fault if the text is not a YAML mapping.
func parseConfig(file string, text []byte) ([]entry, error) {
	n, err := form.Document(text, file, "daemon")
	if err != nil {
		return nil, err
	}
	table := newUpOptions().table()
	known := []string{"bellows_config"}
	for _, s := range table {
		known = append(known, s.field())
	}
	mistakes := &fault.All{}
	err = mistakes
	m := form.Open(file, "", n, &err, known...)
	if v, _ := m.Scalar("bellows_config"); v != configVersion {
		m.Fail("bellows_config", "must be %s, the version of the format", configVersion)
	}
	var all []entry
	for _, s := range table {
		all = append(all, s.read(m)...)
	}
	if len(*mistakes) > 0 {
		slices.SortStableFunc(*mistakes, func(a, b *fault.Fault) int { return a.Line - b.Line })
		return nil, mistakes
	}
	return all, nil
}

// read returns the entries of the setting.
func (s *setting) read(m *form.Mapping) (all []entry) {
	field := s.field()
	switch {
	case !m.Has(field):
		return nil
	case s.named() == nil:
		return s.try(m, field, field, "")
	}
	var names []string
	for i, n := range m.Node(field).Content {
		if i%2 == 0 {
			names = append(names, n.Value)
		}
	}
	inner := m.Open(field, names...)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		switch {
		case !inner.Has(name):
		case strings.Contains(name, "="):
			inner.Fail(name, "must have a name without =")
		default:
			all = append(all, s.try(inner, name, field+" "+name, name+"=")...)
		}
	}
	return all
}

// try sets the setting to the value of a field and returns the entry, or records the mistake. name is that of the row;
// before is the beginning of the text for the flag.
func (s *setting) try(m *form.Mapping, field, name, before string) []entry {
	value, ok := m.Scalar(field)
	if !ok {
		m.Fail(field, "must be one value")
		return nil
	}
	text := before + value
	err := s.value.Set(text)
	if err == nil && s.check != nil {
		err = s.check(text)
	}
	if err == nil {
		return []entry{{name, s.flag, text, m.LineOf(field)}}
	}
	// Some errors begin with the name of the flag, and some quote the value.
	cause := err.Error()
	rest, named := strings.CutPrefix(cause, s.flag+" ")
	switch {
	case named:
		m.FailAt(m.LineOf(field), "%s %s", name, rest)
	case strings.HasPrefix(cause, "setting "):
		m.FailAt(m.LineOf(field), "%s: %s", s.field(), cause)
	case strings.Contains(cause, strconv.Quote(value)):
		m.FailAt(m.LineOf(field), "%s: %s", name, cause)
	default:
		m.Fail(field, "%s", cause)
	}
	return nil
}

// configure completes the settings and the place of the daemon: it reads the configuration file, if there is one, into
// the settings that no flag has set. given are the flags.
func (o *upOptions) configure(given *pflag.FlagSet) error {
	if err := o.place.Fill(); err != nil {
		return err
	}
	path, err := o.configPath(given)
	if err != nil {
		return err
	}
	o.origins.again = o.arguments(given)
	for _, s := range o.table() {
		for name := range s.named() {
			o.origins.set(s.field()+" "+name, "flag")
		}
		if s.named() == nil && given.Changed(s.flag) {
			o.origins.set(s.field(), "flag")
		}
	}
	if path == "" {
		return nil
	}
	entries, err := readConfig(path)
	if err != nil {
		return command.Usage(inOneSentence(path, err))
	}
	return command.Usage(o.apply(path, entries))
}

// apply sets the settings of a configuration file that no flag has set. Settings of the file's policy do not apply
// where a flag names another policy.
func (o *upOptions) apply(path string, entries []entry) error {
	o.origins.file = path
	table := o.table()
	for _, e := range entries {
		if o.origins.stated(e.name) || e.flag == "set" && o.origins.of("policy") == "flag" &&
			!strings.HasPrefix(e.text, o.policy+".") {
			continue
		}
		o.origins.set(e.name, fmt.Sprintf("%s:%d", path, e.line))
		i := slices.IndexFunc(table, func(s setting) bool { return s.flag == e.flag })
		if err := table[i].value.Set(e.text); err != nil {
			return fault.At(path, e.line, "%s %s: %v", e.name, e.text, err)
		}
	}
	return nil
}

// configPath returns the path of the configuration file; empty if there is none.
func (o *upOptions) configPath(given *pflag.FlagSet) (string, error) {
	if !given.Changed("config") {
		usual := o.place.Config()
		if _, err := os.Stat(usual); errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return usual, nil
	}
	if o.config == "" {
		return "", command.Usagef("--config \"\": must be the path of a file")
	}
	var err error
	if o.config, err = filepath.Abs(o.config); err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	return o.config, nil
}

// inOneSentence returns an error of readConfig with the first mistake and the number of further ones.
func inOneSentence(path string, err error) error {
	mistakes, ok := errors.AsType[*fault.All](err)
	if !ok {
		return err
	}
	first, more := (*mistakes)[0], len(*mistakes)-1
	if more == 0 {
		return first
	}
	return fmt.Errorf("%w; and %s: `bellows config check %s` lists all", first, terminal.Count(more, "more mistake"), path)
}
