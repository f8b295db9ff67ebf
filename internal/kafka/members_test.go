package kafka_test

import "testing"

// Whoever does what no member must notice asks first whether there is one.
func TestAGroupIsEmptyWithoutMembers(t *testing.T) {
	addr, topic := broker(t, 2)
	c := newClient(t, addr)
	empty := func() bool {
		t.Helper()
		ok, err := c.GroupIsEmpty(t.Context(), "g-"+topic)
		must(t, err)
		return ok
	}
	if !empty() {
		t.Error("a group that never was has members")
	}
	a := run(t, newClient(t, addr), "g-"+topic, topic, nil)
	a.owns(t, topic, 2)
	if empty() {
		t.Error("a group with a member is empty")
	}
	a.stop()
	eventually(t, "the member has left", empty)
}
