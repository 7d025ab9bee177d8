package architecture

import (
	"go/ast"
	"go/types"
	"path"
	"slices"
)

// mostFields is how many fields a type may have. The fields of a nested struct of the same package count, unless it can
// be understood alone: see structs.alone.
const mostFields = 25

// fields finds types with too many fields.
func (c *checker) fields(files []*ast.File) {
	s := structs{info: types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{},
		Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}, touched: map[*types.TypeName]bool{}}
	// What other packages declare stays unknown, which leads to errors, and changes nothing in the types of this one.
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	s.pkg, _ = config.Check(c.pkg.path, c.set, files, &s.info)
	for _, f := range files {
		for _, d := range f.Decls {
			s.touches(d)
		}
	}
	for _, name := range s.pkg.Scope().Names() {
		t, body := s.declared(s.pkg.Scope().Lookup(name).Type())
		if t == nil || t.Name() != name {
			continue
		}
		at := slices.IndexFunc(wide, func(w wideType) bool { return w.path == c.pkg.path+"."+name })
		most := mostFields
		if at >= 0 {
			most = wide[at].most
		}
		switch n := s.count(body); {
		case n > most:
			c.failf("%s: %s has %d fields: must be at most %d, with those of nested structs that others touch",
				c.position(t.Pos()), name, n, most)
		case at >= 0 && n <= mostFields:
			c.failf("%s: %s has %d fields, and a row in the table of types with more: remove the row",
				c.position(t.Pos()), name, n)
		}
	}
}

// nothing imports packages that declare nothing.
type nothing struct{}

func (nothing) Import(imported string) (*types.Package, error) {
	p := types.NewPackage(imported, path.Base(imported))
	p.MarkComplete()
	return p, nil
}

// structs are the structs that a package declares.
type structs struct {
	pkg     *types.Package
	info    types.Info
	touched map[*types.TypeName]bool // some function uses its fields that is neither its method nor makes it
}

// declared returns the name and the struct of a type, if it is one that the package declares, or a pointer to it.
func (s *structs) declared(t types.Type) (*types.TypeName, *types.Struct) {
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = pointer.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() != s.pkg {
		return nil, nil
	}
	body, _ := named.Origin().Underlying().(*types.Struct)
	if body == nil {
		return nil, nil
	}
	return named.Origin().Obj(), body
}

// touches notes of which structs a declaration uses fields. A method may use those of its receiver, and a function
// those of what it returns.
func (s *structs) touches(d ast.Decl) {
	own := map[*types.TypeName]bool{}
	if f, ok := d.(*ast.FuncDecl); ok {
		signature := s.info.Defs[f.Name].Type().(*types.Signature)
		vars := slices.Collect(signature.Results().Variables())
		if r := signature.Recv(); r != nil {
			vars = append(vars, r)
		}
		for _, v := range vars {
			t, _ := s.declared(v.Type())
			own[t] = true
		}
	}
	touch := func(t types.Type) {
		if name, _ := s.declared(t); name != nil && !own[name] {
			s.touched[name] = true
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if selected := s.info.Selections[n]; selected != nil && selected.Kind() == types.FieldVal {
				t := selected.Recv()
				for _, i := range selected.Index() { // the last, after embedded structs
					touch(t)
					if pointer, ok := t.Underlying().(*types.Pointer); ok {
						t = pointer.Elem()
					}
					t = t.Underlying().(*types.Struct).Field(i).Type()
				}
			}
		case *ast.CompositeLit:
			if t := s.info.Types[n].Type; t != nil && len(n.Elts) > 0 {
				touch(t)
			}
		}
		return true
	})
}

// count returns the number of fields of a struct.
func (s *structs) count(body *types.Struct) (n int) {
	for f := range body.Fields() {
		_, pointer := f.Type().Underlying().(*types.Pointer)
		name, nested := s.declared(f.Type())
		if nested == nil {
			nested, _ = f.Type().(*types.Struct)
		}
		if nested == nil || pointer || name != nil && s.alone(name, nested) {
			n++
		} else {
			n += s.count(nested)
		}
	}
	return n
}

// alone reports whether a nested struct can be understood alone: it has methods, and either nobody else touches its
// fields, or it is a noun: all its fields are exported, and others read it as one value.
func (s *structs) alone(name *types.TypeName, body *types.Struct) bool {
	named := name.Type().(*types.Named)
	if named.NumMethods() == 0 {
		return false
	}
	for f := range body.Fields() {
		if !f.Exported() {
			return !s.touched[name]
		}
	}
	return true
}
