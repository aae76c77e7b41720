package fabric

import "testing"

func TestResultIn(t *testing.T) {
	r, err := resultIn("booting\nRESULT {\"bench\": \"fabric\", \"claims\": [{\"id\": \"interop/kernel/connect\", \"ours\": 2, \"target\": \"<= 0\"}]}\nvm: ended with status 0\n")
	if err != nil || len(r.Claims) != 1 || r.Claims[0].Ours == nil || *r.Claims[0].Ours != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := resultIn("booting\nno result\n"); err == nil {
		t.Error("no result is taken for one")
	}
}
