package kafka

import (
	"testing"

	"github.com/segmentio/kafka-go"
)

func TestStickyGivesAllToWhoeverClaimsMost(t *testing.T) {
	data := func(n uint64) []byte { b, _ := sticky{func() uint64 { return n }}.UserData(); return b }
	partitions := []kafka.Partition{{Topic: "commands", ID: 0}, {Topic: "commands", ID: 1}}
	for name, c := range map[string]struct {
		members []kafka.GroupMember
		want    string
	}{
		"nobody claims":       {[]kafka.GroupMember{{ID: "b", UserData: data(0)}, {ID: "a", UserData: data(0)}}, "a"},
		"one does":            {[]kafka.GroupMember{{ID: "a", UserData: data(0)}, {ID: "b", UserData: data(1)}}, "b"},
		"more counts":         {[]kafka.GroupMember{{ID: "a", UserData: data(2)}, {ID: "b", UserData: data(3)}}, "b"},
		"without a claim":     {[]kafka.GroupMember{{ID: "a"}, {ID: "b", UserData: data(1)}}, "b"},
		"claims of one size":  {[]kafka.GroupMember{{ID: "c", UserData: data(9)}, {ID: "b", UserData: data(9)}}, "b"},
		"an unreadable claim": {[]kafka.GroupMember{{ID: "a", UserData: []byte("much")}, {ID: "b", UserData: data(1)}}, "b"},
	} {
		got := sticky{}.AssignGroups(c.members, partitions)
		for _, m := range c.members {
			if n := len(got[m.ID]["commands"]); (n == 2) != (m.ID == c.want) || n == 1 {
				t.Errorf("%s: %s has %d partitions, want all at %s", name, m.ID, n, c.want)
			}
		}
	}
	if got := (sticky{}).AssignGroups(nil, partitions); len(got) != 0 {
		t.Errorf("nobody gets %v", got)
	}
}
