package spark

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bellows-rm/bellows/durable"
)

// sources are compiled: folder scala for every Spark, and one folder for each line of versions, if it is there.
//
//go:embed scala
var sources embed.FS

// Compiled is the connector, compiled for one Spark.
type Compiled struct {
	Jar         string   // path
	JavaOptions []string // that this Spark needs
}

// Names of files in the folder of a compiled connector.
const (
	jarName     = "bellows-spark.jar"
	optionsName = "java-options"
)

// compileWithin bounds the time of a compilation, which takes 6 to 10 s.
const compileWithin = 5 * time.Minute

// Compile returns the connector for a Spark. It is compiled once, by the compiler of that Spark, and kept in the cache
// of this user; slow is called before that. Of processes that need it at once, one compiles and the others wait. An
// error has what the compiler said.
func Compile(ctx context.Context, i Installation, j Java, slow func()) (Compiled, error) {
	l, err := i.line()
	if err != nil {
		return Compiled{}, err
	}
	files, hash, err := sourcesOf(sources, "scala", l.folder)
	if err != nil {
		return Compiled{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Compiled{}, fmt.Errorf("find the folder for the compiled connector: %w", err)
	}
	cache = filepath.Join(cache, "bellows", "spark")
	dir := filepath.Join(cache, fmt.Sprintf("%s-%s-%s", i.Spark, i.Scala, hash))
	if c, err := read(dir); err == nil {
		return c, nil
	}
	if err := durable.MakeDir(cache); err != nil {
		return Compiled{}, fmt.Errorf("make the folder for the compiled connector: %w", err)
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return Compiled{}, fmt.Errorf("lock the folder for the compiled connector: %w", err)
	}
	defer unlock()
	if c, err := read(dir); err == nil {
		return c, nil // by another process
	}
	slow()
	ctx, cancel := context.WithTimeout(ctx, compileWithin)
	defer cancel()
	if err := build(ctx, i, j, files, dir); err != nil {
		return Compiled{}, fmt.Errorf("compile the connector for Spark %s in %s: %w", i.Spark, i.Home, err)
	}
	return read(dir)
}

// read reads what was compiled into a folder.
func read(dir string) (Compiled, error) {
	options, err := os.ReadFile(filepath.Join(dir, optionsName))
	c := Compiled{filepath.Join(dir, jarName), strings.Fields(string(options))}
	if err == nil {
		_, err = os.Stat(c.Jar)
	}
	return c, err
}

// lock waits until no other process has the lock of a path.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return func() { _ = f.Close() }, err
}

// file is a source, or what goes into the jar as it is.
type file struct {
	name string // below its folder
	text []byte
}

func (f file) compiled() bool { return path.Ext(f.name) == ".scala" }

// sourcesOf returns the files of folders in order, those of a missing folder left out, and a hash of all of them.
func sourcesOf(from fs.FS, folders ...string) (files []file, hash string, err error) {
	sum := sha256.New()
	for _, folder := range folders {
		err := fs.WalkDir(from, folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(from, name)
			below := strings.TrimPrefix(strings.TrimPrefix(name, folder+"/"), "resources/")
			files = append(files, file{below, text})
			fmt.Fprintf(sum, "%s %d\n%s", below, len(text), text)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
	}
	return files, fmt.Sprintf("%x", sum.Sum(nil)[:6]), nil
}

// build compiles files into a new folder dir, which appears as a whole or not at all.
func build(ctx context.Context, i Installation, j Java, files []file, dir string) error {
	work, err := os.MkdirTemp(filepath.Dir(dir), ".new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	out := filepath.Join(work, "out")
	jar, jars := filepath.Join(out, jarName), filepath.Join(i.Home, "jars", "*")
	classes, err := compile(ctx, j, jars, files, work)
	if err != nil {
		return err
	}
	if err := durable.MakeDir(out); err != nil {
		return err
	}
	if err := pack(jar, classes, files); err != nil {
		return err
	}
	options, err := run(ctx, j, "-cp", jar+":"+jars, "org.apache.spark.executor.bellows.JavaOptions")
	if err != nil {
		return err
	}
	if err := durable.Write(filepath.Join(out, optionsName), options); err != nil {
		return err
	}
	return durable.Rename(out, dir)
}

// compile writes sources below a folder, and returns the folder of their classes.
func compile(ctx context.Context, j Java, jars string, files []file, work string) (classes string, err error) {
	classes = filepath.Join(work, "classes")
	if err := os.Mkdir(classes, 0o700); err != nil {
		return "", err
	}
	args := []string{"-Xss8m", "-cp", jars, "scala.tools.nsc.Main", "-usejavacp", "-nowarn", "-d", classes}
	for n, f := range files {
		if !f.compiled() {
			continue
		}
		name := filepath.Join(work, fmt.Sprint(n), filepath.Base(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(name, f.text, 0o600); err != nil {
			return "", err
		}
		args = append(args, name)
	}
	_, err = run(ctx, j, args...)
	return classes, err
}

// mostSaid bounds what is repeated of a program that failed, bytes: the end of it.
const mostSaid = 4 << 10

// run runs a program of Java, and returns its standard output. An error has what it said.
func run(ctx context.Context, j Java, args ...string) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, j.Path, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "JAVA_TOOL_OPTIONS=")
	})
	err := cmd.Run()
	if err != nil {
		text := append(out.Bytes(), said.Bytes()...)
		return nil, fmt.Errorf("%w: %s", cmp.Or(ctx.Err(), err), bytes.TrimSpace(text[max(0, len(text)-mostSaid):]))
	}
	return out.Bytes(), nil
}

// pack writes a jar of classes, and of files that are not compiled. The same gives the same bytes.
func pack(jar, classes string, files []file) (err error) {
	var text bytes.Buffer
	z := zip.NewWriter(&text)
	add := func(name string, content []byte) error {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	}
	for _, f := range files {
		if !f.compiled() {
			err = errors.Join(err, add(f.name, f.text))
		}
	}
	tree := os.DirFS(classes)
	err = errors.Join(err, fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := tree.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		content, err := io.ReadAll(f)
		return errors.Join(err, add(filepath.ToSlash(name), content))
	}))
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	return durable.Write(jar, text.Bytes())
}
