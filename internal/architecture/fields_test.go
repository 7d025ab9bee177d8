package architecture

import (
	"go/ast"
	"slices"
)

// mostFields is how many fields a type may have. The fields of a nested struct of the same package count, unless it has
// methods of its own: then it is a part that can be understood alone.
const mostFields = 25

// fields finds types with too many fields.
func (c *checker) fields(files []*ast.File) {
	s := structs{types: map[string]*ast.StructType{}, methods: map[string]bool{}}
	var names []*ast.Ident
	for _, f := range files {
		names = append(names, s.add(f)...)
	}
	for _, name := range names {
		at := slices.IndexFunc(wide, func(w folder) bool { return w.path == c.pkg.path+"."+name.Name })
		switch n := s.count(s.types[name.Name]); {
		case at < 0 && n > mostFields:
			c.failf("%s: %s has %d fields: must be at most %d, with those of nested structs without methods", c.at(name),
				name.Name, n, mostFields)
		case at >= 0 && n <= mostFields:
			c.failf("%s: %s has %d fields, and a row in the table of types with more: remove the row", c.at(name),
				name.Name, n)
		}
	}
}

// structs are the structs that a package declares, and which of them have methods, by name.
type structs struct {
	types   map[string]*ast.StructType
	methods map[string]bool
}

// add takes in the declarations of a file, and returns the names of its structs.
func (s *structs) add(f *ast.File) (names []*ast.Ident) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil && len(d.Recv.List) > 0 {
				s.methods[typeName(d.Recv.List[0].Type)] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				t, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if body, ok := t.Type.(*ast.StructType); ok {
					s.types[t.Name.Name], names = body, append(names, t.Name)
				}
			}
		}
	}
	return names
}

// typeName is the name of a type of this package, of which an expression is a value or, as a receiver, a pointer; empty
// for other types.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	}
	return ""
}

// count returns the number of fields of a struct.
func (s *structs) count(t *ast.StructType) (n int) {
	for _, f := range t.Fields.List {
		each := 1
		switch e := f.Type.(type) {
		case *ast.StructType:
			each = s.count(e)
		case *ast.Ident, *ast.IndexExpr, *ast.IndexListExpr:
			if nested := s.types[typeName(e)]; nested != nil && !s.methods[typeName(e)] {
				each = s.count(nested)
			}
		}
		n += each * max(1, len(f.Names))
	}
	return n
}
