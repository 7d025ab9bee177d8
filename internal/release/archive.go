package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"path"
	"slices"
	"time"
)

// archive has the program, the documents, the manual pages and the completions in one folder.
func (r *release) archive(arch string, program []byte) (name string, packed []byte, err error) {
	top := "bellows-" + r.version + "-linux-" + arch
	files := []file{{top + "/bellows", 0o755, program}}
	for _, f := range r.common {
		f.path = top + "/" + f.path
		files = append(files, f)
	}
	packed, err = tarball(files, "", r.date)
	return top + ".tar.gz", packed, err
}

// tarball packs files, with their folders, which all belong to root. The path of each begins with before.
func tarball(files []file, before string, date time.Time) ([]byte, error) {
	var packed bytes.Buffer
	squeezed, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level exists
	w := tar.NewWriter(squeezed)
	var dirs []file
	for _, f := range files {
		for dir := path.Dir(f.path); dir != "." && dir != "/"; dir = path.Dir(dir) {
			dirs = append(dirs, file{path: dir + "/", mode: 0o755})
		}
	}
	all := append(dirs, files...)
	slices.SortStableFunc(all, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	all = slices.CompactFunc(all, func(a, b file) bool { return a.path == b.path })
	for _, f := range all {
		h := &tar.Header{Name: before + f.path, Mode: f.mode, Size: int64(len(f.text)), ModTime: date,
			Uname: "root", Gname: "root", Format: tar.FormatGNU}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := squeezed.Close()
	return packed.Bytes(), err
}

// squeeze compresses one file, without a name or a date of its own.
func squeeze(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err := w.Close()
	return packed.Bytes(), err
}
