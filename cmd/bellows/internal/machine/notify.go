package machine

import (
	"net"
	"os"
)

// tellServiceManager sends a message as sd_notify(3) describes it, once: nothing that this process starts may speak
// for it. Without a service manager that listens it does nothing.
func tellServiceManager(message string) error {
	const where = "NOTIFY_SOCKET"
	socket := os.Getenv(where)
	if socket == "" {
		return nil
	}
	if err := os.Unsetenv(where); err != nil {
		return err
	}
	c, err := net.Dial("unixgram", socket)
	if err != nil {
		return err
	}
	_, err = c.Write([]byte(message))
	if closed := c.Close(); err == nil {
		err = closed
	}
	return err
}
