package oftest

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// step is a line of a script: what is done to a switch, and in a recording also what its controllers then received.
type step struct {
	comment string
	to      int           // the controller that sends, 1 or 2; 0 for frames and waits
	send    []byte        // a message
	port    int           // where a frame arrives
	frame   []byte        // a frame
	wait    time.Duration // time that passes
	got     [2][][]byte   // messages to each controller, without the answers to the barriers of the recorder
}

// script is a list of steps on a switch with the ports 1 to 4, which has neither flows, groups nor meters at the begin.
type script struct {
	name  string
	steps []step
}

// xid returns the next transaction id: they are successive, so that a recording is reproducible.
func (s *script) xid() uint32 { return uint32(len(s.steps) + 1) }

// raw adds a message that is given as bytes, with the next transaction id.
func (s *script) raw(to int, comment string, b []byte) {
	if len(b) >= openflow.HeaderLen {
		b[7] = byte(s.xid())
		b[6] = byte(s.xid() >> 8)
	}
	s.steps = append(s.steps, step{comment: comment, to: to, send: b})
}

func (s *script) send(comment string, m openflow.Message) { s.sendTo(1, comment, m) }

func (s *script) sendTo(to int, comment string, m openflow.Message) {
	b, err := openflow.Append(nil, s.xid(), m)
	if err != nil {
		panic(fmt.Sprintf("%s: %s: %v", s.name, comment, err))
	}
	s.raw(to, comment, b)
}

func (s *script) multipart(comment string, body openflow.RequestBody) {
	s.send(comment, &openflow.MultipartRequest{Body: body})
}

func (s *script) arrive(comment string, port int, frame []byte) {
	s.steps = append(s.steps, step{comment: comment, port: port, frame: frame})
}

func (s *script) pass(comment string, d time.Duration) {
	s.steps = append(s.steps, step{comment: comment, wait: d})
}

// String is the script as a file of testdata: a line "# comment" for each step, "1> hex" for a message of controller 1,
// "frame 2 hex" for a frame that arrives at port 2, "wait 2s", and "1< hex" for each message to controller 1.
func (s *script) String() string {
	var b strings.Builder
	for _, st := range s.steps {
		fmt.Fprintf(&b, "# %s\n", st.comment)
		switch {
		case st.to > 0:
			fmt.Fprintf(&b, "%d> %x\n", st.to, st.send)
		case st.frame != nil:
			fmt.Fprintf(&b, "frame %d %x\n", st.port, st.frame)
		default:
			fmt.Fprintf(&b, "wait %v\n", st.wait)
		}
		for i, all := range st.got {
			for _, m := range all {
				fmt.Fprintf(&b, "%d< %x\n", i+1, m)
			}
		}
	}
	return b.String()
}

// readScript reads what String has written.
func readScript(name, path string) (*script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &script{name: name}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if err := s.read(lines.Text()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return s, lines.Err()
}

func (s *script) read(line string) error {
	if comment, ok := strings.CutPrefix(line, "# "); ok {
		s.steps = append(s.steps, step{comment: comment})
		return nil
	}
	if len(s.steps) == 0 {
		return fmt.Errorf("a comment must come first")
	}
	st := &s.steps[len(s.steps)-1]
	words := strings.Fields(line)
	b, err := hex.DecodeString(words[len(words)-1])
	switch words[0] {
	case "1>", "2>":
		st.to, st.send = int(words[0][0]-'0'), b
	case "1<", "2<":
		i := words[0][0] - '1'
		st.got[i] = append(st.got[i], b)
	case "frame":
		st.frame = b
		if err == nil {
			st.port, err = strconv.Atoi(words[1])
		}
	case "wait":
		st.wait, err = time.ParseDuration(words[1])
	default:
		return fmt.Errorf("cannot read %q", line)
	}
	return err
}
