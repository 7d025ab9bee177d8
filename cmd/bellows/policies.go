package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/terminal"
)

// policyJSON is a policy in the output of `bellows policies --json`.
type policyJSON struct {
	Name     string        `json:"name" doc:"name of the policy"`
	About    string        `json:"about" doc:"what it does"`
	Settings []settingJSON `json:"settings" doc:"its settings"`
}

type settingJSON struct {
	Name    string `json:"name" doc:"name of the setting"`
	Default string `json:"default" doc:"its value unless it is set"`
	Meaning string `json:"meaning" doc:"what it does"`
}

func policiesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "policies [POLICY...]",
		Short: "List the policies and their settings",
		Long: `List the policies, each with its settings and their defaults. "bellows up" and
"bellows simulate" take settings as --set POLICY.NAME=VALUE.`,
		Example: `  bellows policies
  bellows policies yarn-me
  bellows up --policy yarn-me --set yarn-me.timeline=resimulate`,
		RunE: func(cmd *cobra.Command, names []string) error {
			list, err := listPolicies(names)
			if err != nil {
				return err
			}
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), map[string]any{"policies": list})
			}
			return printPolicies(cmd.OutOrStdout(), list)
		},
		ValidArgs: policy.Names(),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listPolicies(names []string) ([]policyJSON, error) {
	if len(names) == 0 {
		names = policy.Names()
	}
	var list []policyJSON
	for _, name := range names {
		if _, err := policy.New(name, nil); err != nil {
			return nil, command.Usage(err)
		}
		about, parameters := policy.About(name)
		p := policyJSON{Name: name, About: about, Settings: []settingJSON{}}
		for _, s := range parameters {
			p.Settings = append(p.Settings, settingJSON(s))
		}
		list = append(list, p)
	}
	return list, nil
}

func printPolicies(w io.Writer, list []policyJSON) error {
	for i, p := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n", p.Name, terminal.Fold(p.About, terminal.Width-len(p.Name)-2, "  "))
		for _, s := range p.Settings {
			fmt.Fprintf(w, "  %s=%s\n      %s\n", s.Name, s.Default, terminal.Fold(s.Meaning, terminal.Width-6, "      "))
		}
	}
	return nil
}
