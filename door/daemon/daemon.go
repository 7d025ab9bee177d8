package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/server"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/node/agent"
	"github.com/bellows-rm/bellows/node/profiler"
	"github.com/bellows-rm/bellows/pool/fleet"
)

// Config is the configuration of a Daemon.
type Config struct {
	// State is the state directory, an absolute path.
	State string
	// Socket is the path of the socket on which the API is served; empty is no API.
	Socket string
	// Door says who may connect to the socket, and Operators who of them may see and change everything, as root and the
	// daemon's user may; nil is no group.
	Door      server.Door
	Operators *api.Group
	// Listen is the address of the network, HOST:PORT, at which the API is served over TLS to clients with a token;
	// empty means none. It needs a socket, too. Certificate is that of the daemon.
	Listen      string
	Certificate *tls.Certificate
	// Configuration is the path of the configuration file, for people; empty if there is none.
	Configuration string
	// Hangups receives when Serve is to read the configuration again, by Reread, whose error is one sentence; nil is
	// never.
	Hangups <-chan os.Signal
	Reread  func() (Reread, error)
	// Level is the least level of messages in Log, which a configuration that was read again changes; nil only without
	// Hangups.
	Level *slog.LevelVar
	// Agent configures what part of the machine is managed, and how. Open sets Dir and Log.
	Agent agent.Config
	// Driver configures the policy and its engine. Open sets Backend, Store, Dir, UID and Log.
	Driver live.Config
	// MeasureDisk says that the bandwidth of the disk below State is measured, once, and becomes a part of the
	// capacity. A disk that cannot be measured has no limit.
	MeasureDisk bool
	// AcceptStore says that a store which is damaged, or behind what is known of it, is no reason not to open: see
	// store.Accept.
	AcceptStore bool
	// Version is the version of this program that the API reports.
	Version string
	Log     *slog.Logger // nil is slog.Default
}

// Daemon manages this machine from Open until Close, Remove or the end of Serve. Callers in the same process may use
// its parts.
type Daemon struct {
	Agent  *agent.Agent
	Driver *live.Driver
	Store  *store.Store
	Pools  *fleet.Pools // nil without a socket

	config Config
	log    *slog.Logger
	lock   *store.Lock
	server *server.Server // nil without a socket
	served chan error     // receives the error with which the server ended, on the socket and on the network
	// configured is the configuration as the API shows it.
	configured api.Configuration
}

// Open opens the parts, each on the parts before it. It finds the containers of an earlier daemon. The errors are
// errors of the parts: another daemon has locked the state directory, another daemon answers on the socket, or an
// agent.NoCgroupError.
func Open(c Config) (*Daemon, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	d := &Daemon{config: c, log: c.Log, configured: api.Configuration{File: c.Configuration},
		served: make(chan error, 2)}
	if err := d.open(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Daemon) open() (err error) {
	// 1. No other daemon uses the state.
	if d.lock, err = store.TakeLock(d.config.State); err != nil {
		return err
	}
	if err := d.openStore(); err != nil {
		return err
	}
	if d.config.MeasureDisk {
		d.findDisk()
	}
	// 2. No other daemon answers on the socket. This comes before the agent, which treats control groups without an
	// owner as left behind.
	socket, network, err := d.listen()
	if err != nil {
		return err
	}
	// 3. The machine, and the engine that decides about it. Clients that connect wait until the API is served.
	if err := d.manage(); err != nil {
		return errors.Join(err, closeAll(socket, network))
	}
	if err := d.Store.Unmarked(); err != nil {
		d.log.Warn("the mark of the store is in the state directory: if that is lost, the next one is taken for a new one",
			"error", err)
	}
	// 4. The pools of executors: an executor that finds no pool ends. Then clients are answered.
	if d.config.Socket != "" {
		if err := d.openPools(); err != nil {
			return errors.Join(err, closeAll(socket, network))
		}
	}
	if socket != nil {
		d.serve(socket, network)
	}
	listens := "none"
	if network != nil {
		listens = network.Addr().String()
	}
	capacity := d.Capacity()
	d.log.Info("bellows started", "version", d.config.Version, "pid", os.Getpid(), "state_dir", d.config.State, "socket",
		d.config.Socket, "network", listens, "configuration", cmp.Or(d.config.Configuration, "none"), "policy",
		d.config.Driver.Policy.Name(), "memory", resource.FormatMemory(capacity[resource.Memory]), "cpus",
		resource.FormatCPU(capacity[resource.CPU]))
	return nil
}

func (d *Daemon) openStore() (err error) {
	if d.config.AcceptStore {
		changed, err := store.Accept(d.config.State)
		if err != nil {
			return err
		}
		d.log.Warn("the store is accepted as it is", "changed", strings.Join(changed, "; "))
	}
	d.Store, err = store.Open(d.config.State)
	return err
}

// listen opens the socket, and the address on the network; each is nil if there is none.
func (d *Daemon) listen() (socket, network net.Listener, err error) {
	if d.config.Socket != "" {
		if socket, err = server.Listen(d.config.Socket, d.config.Door); err != nil {
			return nil, nil, err
		}
	}
	if d.config.Listen != "" {
		if network, err = net.Listen("tcp", d.config.Listen); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("listen on the network: %w", err), closeAll(socket))
		}
	}
	return socket, network, nil
}

// closeAll closes the listeners that are not nil.
func closeAll(all ...net.Listener) (err error) {
	for _, l := range all {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// serve answers the clients that connect.
func (d *Daemon) serve(socket, network net.Listener) {
	about := api.Daemon{Version: d.config.Version, PID: os.Getpid(), UID: uint32(os.Geteuid()), State: d.config.State,
		Settings: d.config.Driver.Settings, Operators: d.config.Operators}
	about.Configuration = d.configured.Shown()
	s := server.New(withPools{d.Driver, d.Pools}, d.Pools, d.Store, about, d.log)
	d.server = s
	if network != nil {
		serve := s.OnNetwork(network, d.config.Certificate)
		go func() { d.served <- serve() }()
	}
	go func() { d.served <- s.Serve(socket) }()
}

// manage opens the agent and starts the driver on it.
func (d *Daemon) manage() (err error) {
	a := d.config.Agent
	a.Dir, a.Log = d.config.State, d.log
	if d.Agent, err = agent.Open(a); err != nil {
		return err
	}
	if text := d.Agent.Crowded(); text != "" {
		d.log.Warn("all daemons together may grant more than the machine has", "reason", text)
	}
	c := d.config.Driver
	c.Backend, c.Store, c.Dir, c.Log, c.UID = d.Agent, d.Store, d.config.State, d.log, uint32(os.Geteuid())
	d.Driver, err = live.Start(c)
	return err
}

// openPools opens the pools on the driver.
func (d *Daemon) openPools() (err error) {
	d.Pools, err = fleet.Open(fleet.Config{State: d.config.State, Socket: d.config.Socket, Capacity: d.Capacity(),
		Jobs: d.Driver, MostExecutors: server.MostExecutors(), FetchBack: d.Agent.FetchBack, Log: d.log})
	return err
}

// withPools is the driver for clients: before it ends for good, executors that run nothing end.
type withPools struct {
	*live.Driver
	pools *fleet.Pools
}

// Shutdown is that of the driver.
func (d withPools) Shutdown(ctx context.Context, kill bool) error {
	resume, err := d.pools.Retire(ctx, kill)
	if err != nil {
		return err
	}
	if err := d.Driver.Shutdown(ctx, kill); err != nil {
		resume()
		return err
	}
	return nil
}

// findDisk adds the bandwidth of the disk to the capacity.
func (d *Daemon) findDisk() {
	var err error
	if d.config.Agent.Capacity[resource.Disk], err = speedOfDisk(d.config.State, profiler.MeasureDisk); err != nil {
		d.log.Info("cannot measure the bandwidth of the disk", "error", err)
	}
}

// Capacity returns the resources of the machine that the daemon manages.
func (d *Daemon) Capacity() resource.Vector { return d.config.Agent.Capacity }

// Serve works until the daemon ends, and meanwhile reads the configuration again when it should. A request to the API
// ends the daemon for good, and Serve removes the control groups. The end of ctx ends it for now, and every container
// runs on. An engine that hangs ends it, too: Serve returns an error and does not clean up, because that would need
// the engine.
func (d *Daemon) Serve(ctx context.Context) error {
	var err error
	why := "its process was asked to end; containers continue"
	defer func() { d.log.Info("bellows stopped", "reason", why) }()
	for {
		select {
		case <-d.config.Hangups:
			d.reload()
			continue
		case <-ctx.Done():
		case <-d.Driver.Done():
			why = "bellows down"
			// Control groups that remain do no harm: the next daemon finds them.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			if err := d.Remove(ctx); err != nil {
				d.log.Warn("some control groups were not removed", "error", err)
			}
			return nil
		case err = <-d.served:
			why = "the API cannot be served; containers continue"
		case <-d.Driver.Dead():
			why = "the engine hung; containers continue"
			return errors.New("the engine hung and did not recover; the containers continue: start bellows up again, " +
				"which sets aside the job that the engine hung on")
		}
		return errors.Join(err, d.Close())
	}
}

// Remove ends the daemon for good and removes the control groups. It returns an error if containers run; see
// live.Driver.Shutdown.
func (d *Daemon) Remove(ctx context.Context) error {
	err := d.letGo()
	if d.Agent != nil {
		err = errors.Join(err, d.Agent.Remove(ctx))
		d.Agent = nil
	}
	return errors.Join(err, d.Close())
}

// Close closes the parts that are open and leaves every container as it is.
func (d *Daemon) Close() error {
	err := d.letGo()
	if d.Agent != nil {
		d.Agent.Close()
		d.Agent = nil
	}
	if d.Store != nil {
		err = errors.Join(err, d.Store.Close())
		d.Store = nil
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Release())
		d.lock = nil
	}
	return err
}

// letGo ends the API and then the driver. Requests in progress may finish; requests that would wait for long are cut
// off.
func (d *Daemon) letGo() error {
	if d.lock != nil {
		d.lock.Closing()
	}
	if d.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.server.Shutdown(ctx)
		d.server = nil
	}
	if d.Pools != nil { // after the server, so that no executor hears that its pool is not there
		d.Pools.Close()
		d.Pools = nil
	}
	if d.Driver == nil {
		return nil
	}
	err := d.Driver.Close()
	d.Driver = nil
	if err != nil {
		return fmt.Errorf("end the driver: %w", err)
	}
	return nil
}
