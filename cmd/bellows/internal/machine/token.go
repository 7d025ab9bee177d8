package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

func tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke tokens for clients on the network",
		Long: `Create, list and revoke tokens. A client that connects over the network to a
daemon that was started with --listen presents a token, and has rights of the
token's user:

  read    to see what the user may see
  submit  the same, to submit jobs, and to kill, pause and resume own jobs
  admin   the same, and what operators may do; only for operators

Jobs that are submitted with a token run as its user. These commands need the
socket of the daemon: they are not possible with a token.`,
		Example: `  bellows token create --scope submit --expires 30d --file ~/.bellows-token
  bellows ps --server https://node7:8443 --token-file ~/.bellows-token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tokenCreateCommand(), tokenListCommand(), tokenRevokeCommand())
	return cmd
}

// tokenCreateOptions are the flags of token create.
type tokenCreateOptions struct {
	place  place.Place
	n      api.NewToken
	file   string
	asJSON bool
}

func tokenCreateCommand() *cobra.Command {
	o := tokenCreateOptions{n: api.NewToken{Lifetime: 30 * day}}
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token, and print it once",
		Long: `Create a token, and print it. The daemon does not store it, and cannot print it
again. Everyone who has it has the rights of its user, until it expires, is
revoked, or its user is removed: keep it in a file that only you can read, which
--file makes.

Ordinary users create tokens for themselves, root for any user. A user can have
100 tokens that are valid.`,
		Example: `  bellows token create --scope read --file ~/.bellows-token
  bellows token create --user ada --scope submit --expires 7d    (as root)`,
		Args: cobra.NoArgs,
		RunE: o.place.Run(func(cmd *cobra.Command, client *client.Client, _ []string) error { return o.run(cmd, client) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.n.User, "user", "", "`name` of the token's user; default: you")
	f.Var(scopeFlag(&o.n.Scope), "scope", "what the token is good for: "+strings.Join(api.ScopeNames(), ", ")+
		"; required")
	f.Var(lifetimeFlag(&o.n.Lifetime), "expires",
		"time after which the token is not valid any more, such as 12h or 30d, up to 365d")
	f.StringVar(&o.file, "file", "", "write the token to a new `file` that only you can read, and do not print it")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	o.place.SocketFlag(cmd)
	return cmd
}

func (o *tokenCreateOptions) run(cmd *cobra.Command, client *client.Client) error {
	if o.n.Scope == 0 {
		return command.Usagef("scope: must be given, one of %s", strings.Join(api.ScopeNames(), ", "))
	}
	issued, err := o.create(cmd.Context(), client)
	if err != nil {
		return err
	}
	if o.asJSON {
		if o.file != "" {
			issued.Secret = ""
		}
		return terminal.WriteJSON(cmd.OutOrStdout(), issued)
	}
	if o.file == "" {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), issued.Secret); err != nil {
			return err
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "bellows: token %d of %s for scope %s expires %s\n", issued.ID, issued.User,
		issued.Scope, issued.Expires.Format(time.DateTime))
	return nil
}

// create creates the token, and writes it to the file if there is one. The file is made first: a token that is not
// written anywhere would be lost.
func (o *tokenCreateOptions) create(ctx context.Context, client *client.Client) (api.IssuedToken, error) {
	if o.file == "" {
		return client.CreateToken(ctx, o.n)
	}
	f, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return api.IssuedToken{}, command.Usagef("file: %w", err)
	}
	issued, err := client.CreateToken(ctx, o.n)
	if err == nil {
		_, err = fmt.Fprintln(f, issued.Secret)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(o.file)
	}
	return issued, err
}

func tokenListCommand() *cobra.Command {
	var p place.Place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens",
		Long: `List your tokens, for operators those of all users. USED is when a token was
last used, to the hour.`,
		Example: `  bellows token list
  bellows token list --json`,
		Args: cobra.NoArgs,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, _ []string) error {
			all, err := client.Tokens(cmd.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				return terminal.WriteJSON(cmd.OutOrStdout(), map[string]any{"tokens": terminal.OrEmpty(all)})
			}
			return printTokens(cmd.OutOrStdout(), all, time.Now())
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.SocketFlag(cmd)
	return cmd
}

// printTokens prints one row per token.
func printTokens(w io.Writer, all []api.Token, now time.Time) error {
	t := terminal.NewTable(">TOKEN", "USER", "SCOPE", ">CREATED", ">USED", "STATE")
	t.Shrinks = 1
	for i := range all {
		k := &all[i]
		used := "-"
		if !k.Used.IsZero() {
			used = k.Used.Format(time.DateTime)
		}
		state := "expires in " + terminal.Age(k.Expires.Sub(now))
		switch {
		case !k.Revoked.IsZero():
			state = "revoked"
		case !now.Before(k.Expires):
			state = "expired"
		}
		t.Add(strconv.FormatInt(k.ID, 10), k.User, k.Scope.String(), terminal.Age(now.Sub(k.Created))+" ago", used, state)
	}
	return t.Write(w)
}

func tokenRevokeCommand() *cobra.Command {
	var p place.Place
	cmd := &cobra.Command{
		Use:   "revoke TOKEN...",
		Short: "Revoke tokens",
		Long: `Revoke tokens, by the numbers that "bellows token list" prints: from now on they
are not valid, and requests with them end. Jobs that were submitted with them
run on.`,
		Example: `  bellows token revoke 3`,
		Args:    command.SomeArguments("token: must be the number of at least one token"),
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, args []string) error {
			ids := make([]int64, len(args))
			for i, text := range args {
				var err error
				if ids[i], err = strconv.ParseInt(text, 10, 64); err != nil || ids[i] < 1 {
					return command.Usagef("token %q: must be the number of a token, such as 3; `bellows token list` lists them", text)
				}
			}
			var all error
			for _, id := range ids {
				all = errors.Join(all, client.RevokeToken(cmd.Context(), id))
			}
			return all
		}),
	}
	p.SocketFlag(cmd)
	return cmd
}

func scopeFlag(to *api.Scope) pflag.Value {
	return flags.Parsed(to, "scope", func(text string) (s api.Scope, err error) {
		if s.UnmarshalText([]byte(text)) != nil {
			err = fmt.Errorf("must be one of %s", strings.Join(api.ScopeNames(), ", "))
		}
		return s, err
	}, api.Scope.String)
}

const day = 24 * time.Hour

// lifetimeFlag is a flag for the lifetime of a token: a number of days, or a duration.
func lifetimeFlag(to *time.Duration) pflag.Value {
	return flags.Parsed(to, "duration", parseLifetime, func(d time.Duration) string {
		switch {
		case d == 0:
			return ""
		case d%day == 0:
			return fmt.Sprintf("%dd", d/day)
		}
		return d.String()
	})
}

func parseLifetime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * day
	}
	if err != nil || d < api.LeastLifetime || d > api.MostLifetime {
		return 0, fmt.Errorf("must be a number of days or a duration, such as 30d or 12h, from %v to %dd",
			api.LeastLifetime, api.MostLifetime/day)
	}
	return d, nil
}
