package fleet

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/durable"
)

// key makes the secrets of executors. Secrets cannot be made without it.
type key []byte

const keySize = 32 // bytes

// openKey returns the key in a folder, and makes one if there is none. With another key than before, executors of an
// earlier daemon are refused, and replaced.
func openKey(dir string) (key, error) {
	path := filepath.Join(dir, "key")
	switch k, err := os.ReadFile(path); {
	case err == nil && len(k) == keySize:
		return k, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the key of pools: %w", err)
	}
	k := make(key, keySize)
	_, _ = rand.Read(k) // never fails
	if err := durable.Write(path, k); err != nil {
		return nil, fmt.Errorf("make the key of pools: %w", err)
	}
	return k, nil
}

// secret returns the secret of an executor of a pool.
func (k key) secret(pool string, number int) string {
	h := hmac.New(sha256.New, k)
	fmt.Fprintf(h, "executor/%s/%d", pool, number)
	return hex.EncodeToString(h.Sum(nil))
}

// verify reports whether a text is the secret of an executor, in a time that does not depend on the text.
func (k key) verify(pool string, number int, text string) bool {
	return hmac.Equal([]byte(k.secret(pool, number)), []byte(text))
}

// handover is the folder from which executors read what they need to begin: beside the socket of the daemon, because
// whoever can reach the socket can reach the folder. Its files can be made again at any time, so none has to survive
// a crash.
type handover struct{ dir string }

const secretSuffix = ".secret"

// openHandover makes the folder unless it exists.
func openHandover(socket string) (handover, error) {
	h := handover{socket + ".pools"}
	if err := os.Mkdir(h.dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return h, fmt.Errorf("make the folder of secrets: %w", err)
	}
	info, err := os.Lstat(h.dir)
	if err != nil {
		return h, fmt.Errorf("make the folder of secrets: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || st.Uid != uint32(os.Geteuid()) {
		return h, fmt.Errorf("folder of secrets %s: must be a directory of user %d: remove it", h.dir, os.Geteuid())
	}
	return h, os.Chmod(h.dir, 0o711) // whatever the umask is: executors pass through it, and cannot list it
}

// secretPath is where an executor finds its secret.
func (h handover) secretPath(pool string, number int) string {
	return filepath.Join(h.dir, fmt.Sprintf("%s-%d%s", pool, number, secretSuffix))
}

// give writes a secret to a file that its owner alone can read.
func (h handover) give(pool string, number int, secret string, to cluster.Credentials) error {
	path := h.secretPath(pool, number)
	if err := h.write(path, secret+"\n", 0o600, to); err != nil {
		return fmt.Errorf("hand its secret to executor %d: %w", number, err)
	}
	return nil
}

// write writes a file, entirely or not at all, unless it says the same: on a full disk it may not be possible.
func (h handover) write(path, text string, mode fs.FileMode, to cluster.Credentials) error {
	if info, err := os.Lstat(path); err == nil && info.Mode() == mode && to.UID == uint32(os.Geteuid()) &&
		ownedBy(info, to.UID) {
		if has, err := os.ReadFile(path); err == nil && string(has) == text {
			return nil
		}
	}
	f, err := os.CreateTemp(h.dir, ".new")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil && to.UID != uint32(os.Geteuid()) {
		err = f.Chown(int(to.UID), int(to.GID))
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func ownedBy(info fs.FileInfo, uid uint32) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == uid
}

// drop removes the secret of an executor that has ended.
func (h handover) drop(pool string, number int) { _ = os.Remove(h.secretPath(pool, number)) }

// clear removes all secrets, and what was left of writing them.
func (h handover) clear() error {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return fmt.Errorf("clear the folder of secrets: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, secretSuffix) || strings.HasPrefix(name, ".new") {
			err = errors.Join(err, os.Remove(filepath.Join(h.dir, name)))
		}
	}
	return err
}
