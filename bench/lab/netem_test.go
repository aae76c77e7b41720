package lab

import "testing"

func TestRenoIn(t *testing.T) {
	const out = "=== RUN\n    pftk_vm_test.go:61: loss 0.01: 2.65 Mbit/s, PFTK predicts 2.49 (+6 %); RTT 53ms\n"
	if got, want, err := renoIn(out, "0.01"); got != 2.65 || want != 2.49 || err != nil {
		t.Errorf("%v, %v, %v", got, want, err)
	}
	if _, _, err := renoIn(out, "0.001"); err == nil {
		t.Error("the result of another loss was found")
	}
}
