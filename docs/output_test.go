package docs_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/internal/testfile"
)

// notPrinted has types with JSON that no command prints: the journal of `bellows map`.
const notPrinted = "../cmd/bellows/internal/mapping/journal.go"

// A table of output.md between the marks "fields of PACKAGE.TYPE" and "end" has the fields that the type prints, as the
// tag doc of each describes it; with -rewrite it is written anew. No field that a command prints is missing.
func TestFieldsOfOutput(t *testing.T) {
	const page = "reference/output.md"
	mark := regexp.MustCompile(`(?s)<!-- fields of (\S+)\.(\w+) -->\n.*?<!-- end -->`)
	s := sources{t: t, files: token.NewFileSet(), packages: map[string]*source{},
		own: map[*ast.StructType]bool{}, fields: map[*ast.Field]bool{}}
	text := read(t, page)
	marked := func(m []string) *ast.StructType {
		of, ok := s.load(m[1]).types[m[2]].(*ast.StructType)
		if !ok {
			t.Fatalf("%s: %s.%s is no struct", page, m[1], m[2])
		}
		return of
	}
	for _, m := range mark.FindAllStringSubmatch(text, -1) {
		s.own[marked(m)] = true
	}
	want := mark.ReplaceAllStringFunc(text, func(table string) string {
		m := mark.FindStringSubmatch(table)
		rows := new(strings.Builder)
		s.list(rows, m[1], "", marked(m))
		first, _, _ := strings.Cut(table, "\n")
		return first + "\n\n| field | is | meaning |\n|---|---|---|\n" + rows.String() + "\n<!-- end -->"
	})
	if testfile.Rewriting() {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != text {
		t.Errorf("%s is not what the types say: run the test with -rewrite", page)
	}
	for _, root := range []string{"../cmd", "../door/cli"} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() && e.Name() != "testdata" {
				s.load(strings.TrimPrefix(path, "../"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for f, listed := range s.fields {
		file := s.files.Position(f.Pos()).Filename
		if !listed && file != notPrinted && (strings.HasPrefix(file, "../cmd/") || strings.HasPrefix(file, "../door/cli/")) {
			t.Errorf("%s: %s has no field for %s", s.files.Position(f.Pos()), page, f.Tag.Value)
		}
	}
}

// sources are packages of the project as their source says, by folder. own are the structs that have a table, and
// fields those with a name in JSON, true if they are in one.
type sources struct {
	t        *testing.T
	files    *token.FileSet
	packages map[string]*source
	own      map[*ast.StructType]bool
	fields   map[*ast.Field]bool
}

// source is a package: its types, those of them that write their JSON themselves, with what that is, and the folders
// of the packages that it imports from the project, by their name.
type source struct {
	types   map[string]ast.Expr
	written map[string]string
	imports map[string]string
}

func (s *sources) load(dir string) *source {
	if p := s.packages[dir]; p != nil {
		return p
	}
	p := &source{types: map[string]ast.Expr{}, written: map[string]string{}, imports: map[string]string{}}
	s.packages[dir] = p
	paths, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(s.files, path, nil, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, i := range f.Imports {
			from, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "github.com/bellows-rm/bellows/")
			if ours {
				p.imports[filepath.Base(from)] = from
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				p.types[n.Name.Name] = n.Type
			case *ast.FuncDecl:
				is := map[string]string{"MarshalText": "string", "MarshalJSON": "object"}[n.Name.Name]
				if n.Recv != nil && is != "" {
					p.written[types.ExprString(n.Recv.List[0].Type)] = is
				}
			case *ast.Field:
				if name, _ := tags(n); name != "" {
					s.fields[n] = false
				}
			}
			return true
		})
	}
	return p
}

// kind says what a value of a type in the package dir is in JSON, and which struct it has in which package, if any.
func (s *sources) kind(dir string, e ast.Expr) (is, in string, of *ast.StructType) {
	switch e := e.(type) {
	case *ast.StarExpr:
		return s.kind(dir, e.X)
	case *ast.ArrayType:
		is, in, of = s.kind(dir, e.Elt)
		return "list of " + is, in, of
	case *ast.MapType:
		is, in, of = s.kind(dir, e.Value)
		return "mapping to " + is, in, of
	case *ast.StructType:
		return "object", dir, e
	case *ast.SelectorExpr:
		from := s.load(dir).imports[types.ExprString(e.X)]
		if from == "live/api" {
			return fmt.Sprintf("[%s](fields.md#%s)", e.Sel.Name, strings.ToLower(e.Sel.Name)), "", nil
		}
		return s.kind(from, e.Sel) // from is empty for package time
	}
	p, name := s.load(dir), e.(*ast.Ident).Name
	if p.written[name] == "" && p.types[name] != nil {
		return s.kind(dir, p.types[name])
	}
	return cmp.Or(p.written[name], basic[name]), "", nil
}

// basic says what values of Go's types, and of those of package time, are in JSON.
var basic = map[string]string{"bool": "boolean", "int": "integer", "int64": "integer", "uint64": "integer",
	"float64": "number", "string": "string", "Time": "time", "Duration": "integer"}

// tags returns the name of a field in JSON, empty if it has none, and its description.
func tags(f *ast.Field) (name, doc string) {
	if f.Tag == nil {
		return "", ""
	}
	text, _ := strconv.Unquote(f.Tag.Value) // which works, as the file could be parsed
	name, _, _ = strings.Cut(reflect.StructTag(text).Get("json"), ",")
	return strings.TrimPrefix(name, "-"), reflect.StructTag(text).Get("doc")
}

// list writes a row for each field of a struct in the package dir, and of the structs in it that have no table.
func (s *sources) list(rows *strings.Builder, dir, prefix string, of *ast.StructType) {
	for _, f := range of.Fields.List {
		name, doc := tags(f)
		if f.Names != nil && name == "" {
			continue
		}
		is, in, fields := s.kind(dir, f.Type)
		if f.Names == nil { // what is embedded
			s.list(rows, in, prefix, fields)
			continue
		}
		s.fields[f] = true
		if doc == "" || is == "" {
			s.t.Errorf("%s: %s (%s) has no tag doc, or is of no known kind", s.files.Position(f.Pos()), name, is)
		}
		fmt.Fprintf(rows, "| `%s%s` | %s | %s |\n", prefix, name, is, strings.ReplaceAll(doc, "|", `\|`))
		if fields != nil && !s.own[fields] {
			inner := strings.NewReplacer("list of ", "[]", "mapping to ", ".NAME", "object", ".").Replace(is)
			s.list(rows, in, prefix+name+inner, fields)
		}
	}
}
