package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/bellows-rm/bellows"

// pkg is a package as the check sees it. Of tests the check reads only imports.
type pkg struct {
	path  string // below the module; "." is the module itself
	files []source
	tests []source
}

type source struct {
	name string // below the module
	text string
}

// check returns a sentence for every rule that is broken, in the order of packages and files.
func check(packages []pkg) ([]string, error) {
	var c checker
	for _, p := range packages {
		c.pkg = p
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	return c.broken, nil
}

type checker struct {
	pkg    pkg
	row    *folder
	broken []string
	set    *token.FileSet
}

func (c *checker) failf(format string, operands ...any) {
	c.broken = append(c.broken, c.pkg.path+": "+fmt.Sprintf(format, operands...))
}

func (c *checker) at(n ast.Node) string { return c.position(n.Pos()) }

func (c *checker) position(at token.Pos) string {
	p := c.set.Position(at)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

func (c *checker) check() error {
	c.row, c.set = rowOf(c.pkg.path), token.NewFileSet()
	if err := c.tests(); err != nil || len(c.pkg.files) == 0 {
		return err
	}
	if c.row == nil {
		c.failf("is in no folder of the table: say there what it may import, and why")
	}
	var comments []string
	var files []*ast.File
	name := path.Base(c.pkg.path)
	for _, s := range c.pkg.files {
		f, err := parser.ParseFile(c.set, s.name, s.text, parser.ParseComments)
		if err != nil {
			return err
		}
		name = f.Name.Name
		if f.Doc != nil && f.Doc.Text() != "" {
			comments = append(comments, path.Base(s.name))
		}
		c.file(f)
		files = append(files, f)
	}
	c.fields(files)
	for _, n := range []string{name, path.Base(c.pkg.path)} {
		if slices.Contains(vague, n) {
			c.failf("is called %s, which says nothing of what it is for", n)
			break
		}
	}
	switch len(comments) {
	case 1:
	case 0:
		c.failf("has no package comment: one file must say what the package is for")
	default:
		c.failf("has package comments in %s: there must be one place to read", strings.Join(comments, " and "))
	}
	return nil
}

// rowOf returns the row that binds a package, its own or else its folder's; nil if there is none.
func rowOf(path string) *folder {
	if r := row(narrower, path); r != nil {
		return r
	}
	top, _, _ := strings.Cut(path, "/")
	return row(folders, top)
}

func row(table []folder, path string) *folder {
	if i := slices.IndexFunc(table, func(f folder) bool { return f.path == path }); i >= 0 {
		return &table[i]
	}
	return nil
}

// allows reports whether a package may be imported.
func (f *folder) allows(imported string) bool {
	return row(folders, f.path) == f && below(imported, f.path) || within(imported, f.may)
}

// within reports whether a package is in one of the folders.
func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return below(path, f) })
}

// tests checks what the tests of a package import.
func (c *checker) tests() error {
	may := func(imported string) bool {
		more := row(tests, c.pkg.path)
		return below(imported, "internal") || imported == c.pkg.path || c.row != nil && c.row.allows(imported) ||
			more != nil && more.allows(imported)
	}
	for _, s := range c.pkg.tests {
		f, err := parser.ParseFile(c.set, s.name, s.text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if inside, ours := strings.CutPrefix(imported, module+"/"); ours && !may(inside) {
				c.failf("%s imports %s, which neither the package nor its tests may: say in the table of tests why they need it",
					c.at(spec), inside)
			}
		}
	}
	return nil
}

func (c *checker) file(f *ast.File) {
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		c.imports(imported, spec)
	}
	if below(c.pkg.path, "core") {
		c.goroutines(f)
	}
	if within(c.pkg.path, clocked) {
		c.functions(f)
	}
	if within(c.pkg.path, durables) {
		c.changes(f)
	}
	if !within(c.pkg.path, truthful) {
		c.truth(f)
	}
	if c.pkg.path != "core/resource" {
		c.kinds(f)
	}
}

// imports checks one import.
func (c *checker) imports(imported string, spec *ast.ImportSpec) {
	inside, ours := strings.CutPrefix(imported, module+"/")
	if ours {
		c.ours(inside, spec)
	}
	if ours || !below(c.pkg.path, "core") {
		return
	}
	if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
		c.failf("%s imports %s: the core uses the standard library only", c.at(spec), imported)
		return
	}
	for _, p := range purity {
		if below(imported, p.path) {
			c.failf("%s imports %s, but %s", c.at(spec), imported, p.reason)
		}
	}
}

func (c *checker) ours(imported string, spec *ast.ImportSpec) {
	switch {
	case path.Base(imported) == "commandtest", below(imported, "internal") && !below(c.pkg.path, "internal"):
		c.failf("%s imports %s: only tests do", c.at(spec), imported)
	case c.row == nil || c.row.allows(imported):
	default:
		may := "nothing else of this module"
		if len(c.row.may) > 0 {
			may = "only " + strings.Join(c.row.may, ", ")
		}
		c.failf("%s imports %s, but may import %s: %s", c.at(spec), imported, may, c.row.reason)
	}
}

func below(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

// goroutines finds go statements.
func (c *checker) goroutines(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			c.failf("%s starts a goroutine: the core is a function, and long work runs outside of it", c.at(n))
		}
		return true
	})
}

// changes finds files that are changed through package os.
func (c *checker) changes(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "os" && x.Obj == nil && slices.Contains(changers, s.Sel.Name) {
			c.failf("%s uses os.%s: files that must survive are changed by package durable alone", c.at(n), s.Sel.Name)
		}
		return true
	})
}

// functions finds uses of the clock and of the global source of randomness.
func (c *checker) functions(f *ast.File) {
	names := map[string]string{} // of imported packages in this file, to their paths
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if imported != "time" && imported != "math/rand" && imported != "math/rand/v2" {
			continue
		}
		switch {
		case spec.Name == nil && imported == "time":
			names["time"] = imported
		case spec.Name == nil:
			names["rand"] = imported
		case spec.Name.Name == ".":
			c.failf("%s imports %s without its name, which hides what is used of it", c.at(spec), imported)
		default:
			names[spec.Name.Name] = imported
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		if !ok || x.Obj != nil { // a local variable may have the name of a package
			return true
		}
		switch imported := names[x.Name]; {
		case imported == "time" && slices.Contains(clock, s.Sel.Name):
			c.failf("%s reads the clock (time.%s): now is an argument", c.at(n), s.Sel.Name)
		case strings.HasPrefix(imported, "math/rand") && !slices.Contains(seeded, s.Sel.Name):
			c.failf("%s uses global randomness (rand.%s): randomness is a seeded source handed to a constructor", c.at(n),
				s.Sel.Name)
		}
		return true
	})
}

// truth finds the type workload.StageTruth and the field workload.Job.Truth.
func (c *checker) truth(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		var name *ast.Ident
		switch n := n.(type) {
		case *ast.SelectorExpr:
			name = n.Sel
		case *ast.KeyValueExpr:
			name, _ = n.Key.(*ast.Ident)
		}
		if name != nil && (name.Name == "Truth" || name.Name == "StageTruth") {
			c.failf("%s uses %s: the truth of tasks is for the simulator alone", c.at(n), name.Name)
		}
		return true
	})
}

// kinds finds code that knows the number or the order of the kinds of resources, which package resource alone does: an
// added kind would be overlooked there.
func (c *checker) kinds(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			list, isList := n.Type.(*ast.ArrayType)
			switch {
			case isList && inResource(list.Elt, "Kind") && len(n.Elts) > 2:
				c.failf("%s lists kinds of resources: range over resource.NumKinds, or over resource.KindsWhere", c.at(n))
			case inResource(n.Type, "Vector") || isList && inResource(list.Len, "NumKinds"):
				if slices.ContainsFunc(n.Elts, isPositional) {
					c.failf("%s names amounts of resources by position: name the kinds", c.at(n))
				}
			}
		case *ast.IndexExpr:
			if x, ok := n.X.(*ast.SelectorExpr); ok && isNumber(n.Index) && slices.Contains(vectors, x.Sel.Name) {
				c.failf("%s indexes %s by a number: name the kind of resource", c.at(n), x.Sel.Name)
			}
		case *ast.CallExpr:
			if inResource(n.Fun, "Kind") && len(n.Args) == 1 && isNumber(n.Args[0]) {
				c.failf("%s makes a kind of resource from a number: name the kind", c.at(n))
			}
		}
		return true
	})
}

// inResource reports whether an expression is a name of package resource.
func inResource(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "resource"
}

// isPositional reports whether an element of a literal stands for the next kind, or for one given by a number.
func isPositional(e ast.Expr) bool {
	pair, named := e.(*ast.KeyValueExpr)
	return !named || isNumber(pair.Key)
}

func isNumber(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.INT
}
