package machine

import (
	"os"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/internal/testcert"
)

// A daemon does not listen on the network without a certificate and its key, and its file with settings is right only
// if both suit each other.
func TestListeningNeedsACertificate(t *testing.T) {
	certificate, key, err := testcert.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := testcert.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		"":                                   "",
		"listen: 127.0.0.1:0":                ":2: tls_cert, tls_key: must both be given",
		"memory: 64MiB\nlisten: 127.0.0.1:0": ":3: tls_cert, tls_key: must both be given",
		"tls_cert: " + certificate:           "tls_cert, tls_key: must both be given",
		"tls_key: " + key:                    "tls_cert, tls_key: must both be given",
		"listen: '[::1]:0'\ntls_cert: " + certificate + "\ntls_key: " + key:         "",
		"listen: localhost:1\ntls_cert: " + other + "\ntls_key: " + key:             "private key does not match public key",
		"listen: localhost:1\ntls_cert: " + certificate + "\ntls_key: " + key + "x": "no such file",
	} {
		_, err := checkConfig(write(t, "bellows_config: 1\n"+settings+"\n"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", settings, err, want)
		}
	}
}

// A daemon reads its certificate again with its configuration. A file that is no certificate changes nothing.
func TestRereadCertificate(t *testing.T) {
	dir := t.TempDir()
	certificate, key, err := testcert.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	o, err := withArguments(t, "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.daemon()
	if err != nil {
		t.Fatal(err)
	}
	reread := o.rereads()
	if _, _, err := testcert.Write(dir); err != nil {
		t.Fatal(err)
	}
	r, err := reread()
	if err != nil || r.Certificate == nil || r.Certificate.Leaf.SerialNumber.Cmp(c.Certificate.Leaf.SerialNumber) == 0 ||
		len(r.Applied) > 0 || len(r.Waiting) > 0 {
		t.Errorf("read again %+v, %v", r, err)
	}
	if err := os.WriteFile(certificate, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := reread(); err == nil || !strings.Contains(err.Error(), "failed to find any PEM data") {
		t.Errorf("of a file that is no certificate: %v", err)
	}
}
