package machine

import (
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/server"
)

// listening is where a daemon listens on the network, and its certificate there.
type listening struct {
	address          string // HOST:PORT; empty is nowhere
	certificate, key string // paths of files
}

// load reads the certificate and its key, and returns nil if there is none. A setting that lacks another is a mistake
// of the user, as are files that do not suit each other.
func (l *listening) load() (*tls.Certificate, error) {
	switch {
	case l.address == "" && l.certificate == "" && l.key == "":
		return nil, nil
	case l.certificate == "" || l.key == "":
		return nil, command.Usagef("tls_cert, tls_key: must both be given: a daemon listens on the network with TLS alone")
	}
	c, err := server.LoadCertificate(l.certificate, l.key)
	return c, command.Usage(err)
}

func addressFlag(to *string) pflag.Value {
	return flags.Parsed(to, "address", func(text string) (string, error) {
		host, port, err := net.SplitHostPort(text)
		if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || host == "" {
			return "", errors.New("must be HOST:PORT, such as 127.0.0.1:8443; the hosts 0.0.0.0 and [::] are all " +
				"addresses of this machine")
		}
		return text, nil
	}, asItIs)
}

// pathFlag is a flag for a file that the daemon reads whenever it reads its configuration: it may have another
// working directory then.
func pathFlag(to *string) pflag.Value {
	return flags.Parsed(to, "file", func(text string) (string, error) {
		if !filepath.IsAbs(text) {
			return "", errors.New("must be an absolute path")
		}
		return text, nil
	}, asItIs)
}

func asItIs(text string) string { return text }
