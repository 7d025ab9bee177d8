package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// The index of Python packages has another project called bellows.
const project = "bellows_rm"

// machine is what Python calls the processors.
var machine = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// wheel is a package of Python with the command alone: pip puts the program beside its own. A static file needs no C
// library: it runs with glibc of any age, and with musl.
func (r *release) wheel(arch string, program []byte) (name string, packed []byte, err error) {
	tags := []string{"manylinux_2_17_" + machine[arch], "musllinux_1_1_" + machine[arch]}
	about := project + "-" + r.version + ".dist-info/"
	metadata := fmt.Sprintf(`Metadata-Version: 2.1
Name: %s
Version: %s
Summary: An elastic resource manager for memory-hungry batch work
Home-page: https://github.com/bellows-rm/bellows
License: Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown

`, strings.ReplaceAll(project, "_", "-"), r.version)
	kind := "Wheel-Version: 1.0\nGenerator: bellows\nRoot-Is-Purelib: false\n"
	for _, tag := range tags {
		kind += "Tag: py3-none-" + tag + "\n"
	}
	files := []file{{project + "-" + r.version + ".data/scripts/bellows", 0o755, program}}
	for _, f := range r.common {
		switch f.path {
		case "LICENSE":
			files = append(files, file{about + "licenses/LICENSE", 0o644, f.text})
		case "README.md":
			metadata += string(f.text)
		}
	}
	files = append(files, file{about + "METADATA", 0o644, []byte(metadata)}, file{about + "WHEEL", 0o644, []byte(kind)})
	record := ""
	for _, f := range files {
		sum := sha256.Sum256(f.text)
		record += fmt.Sprintf("%s,sha256=%s,%d\n", f.path, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.text))
	}
	files = append(files, file{about + "RECORD", 0o644, []byte(record + about + "RECORD,,\n")})
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: r.date}
		h.ExternalAttrs, h.CreatorVersion = uint32(0o100000|f.mode)<<16, 3<<8 // permissions of Unix
		to, err := w.CreateHeader(h)
		if err != nil {
			return "", nil, err
		}
		if _, err := to.Write(f.text); err != nil {
			return "", nil, err
		}
	}
	if err := w.Close(); err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%s-%s-py3-none-%s.whl", project, r.version, strings.Join(tags, ".")), b.Bytes(), nil
}
