package config_test

import (
	"errors"
	"fmt"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

func ExampleParse() {
	set, err := config.Parse("eth0.yaml", []byte(`kind: Interface
dev: eth0
out:
  limit: 1Gbit
  groups:
    - name: web
      guarantee: 40%
      match: [{proto: tcp, dport: 443}]
    - name: rest
      default: true
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	eth0, ok := set.For("eth0")
	fmt.Println(ok, eth0.Name())
	for _, n := range eth0.OutTree.Nodes {
		fmt.Println(n.Path, n.Guarantee)
	}
	// Output:
	// true eth0.yaml:1
	// web 400Mbit
	// rest 0bit
}

// All mistakes are reported at once, each with file, line, key and a remedy.
func ExampleErrors() {
	_, err := config.Parse("eth0.yaml", []byte(`kind: Interface
dev: eth0
out:
  limit: 1000
  groups:
    - {name: web, guarantee: 50, match: [{proto: tcp, dport: 443}]}
    - {name: rest, default: true}
`))
	var mistakes config.Errors
	if errors.As(err, &mistakes) {
		for _, m := range mistakes {
			fmt.Println("line", m.Line, "key", m.Key)
		}
	}
	fmt.Println(err)
	// Output:
	// line 4 key out.limit
	// line 6 key out.groups[0].guarantee
	// eth0.yaml:4: out.limit: "1000" is not a rate: it has no unit; write for example 100Mbit
	// eth0.yaml:6: out.groups[0].guarantee: "50" is not a guarantee: write 50% for a share, or a rate such as 50Mbit
}

// A program that makes a configuration can write it as a document for "headgate apply".
func ExampleFormat() {
	https := group.Selector{Proto: []uint8{group.TCP}, DPort: []group.PortRange{group.SingleRange(443)}}
	fmt.Print(string(config.Format(group.Interface{Dev: "eth0", Out: &group.Direction{Limit: unit.Gbit, Groups: []group.Group{
		{Name: "web", Guarantee: group.Amount{Share: unit.Whole / 2}, Match: []group.Selector{https}},
		{Name: "rest", Default: true},
	}}})))
	// Output:
	// kind: Interface
	// dev: eth0
	// out:
	//   limit: 1Gbit
	//   groups:
	//     - name: web
	//       guarantee: 50%
	//       match:
	//         - {proto: tcp, dport: 443}
	//     - name: rest
	//       default: true
}
