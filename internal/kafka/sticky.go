package kafka

import (
	"encoding/binary"

	"github.com/segmentio/kafka-go"
)

// sticky gives all partitions to the member that claims most, so that whoever does the work keeps it when another joins.
// Members of equal claims are told apart by their id, which all of them see alike.
type sticky struct{ claim func() uint64 }

var _ kafka.GroupBalancer = sticky{}

// ProtocolName implements kafka.GroupBalancer.
func (sticky) ProtocolName() string { return "tocsin-sticky" }

// UserData implements kafka.GroupBalancer: it is asked for at each join.
func (s sticky) UserData() ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, s.claim()), nil
}

// AssignGroups implements kafka.GroupBalancer.
func (sticky) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	claim := func(m kafka.GroupMember) uint64 {
		if len(m.UserData) != 8 {
			return 0
		}
		return binary.BigEndian.Uint64(m.UserData)
	}
	out := kafka.GroupMemberAssignments{}
	var holder *kafka.GroupMember
	for i := range members {
		m := &members[i]
		out[m.ID] = map[string][]int{}
		if holder == nil || claim(*m) > claim(*holder) || claim(*m) == claim(*holder) && m.ID < holder.ID {
			holder = m
		}
	}
	if holder == nil {
		return out
	}
	for _, p := range partitions {
		out[holder.ID][p.Topic] = append(out[holder.ID][p.Topic], p.ID)
	}
	return out
}

// balancers are what a member offers. A group chooses what all of its members know, so members of a version without
// stickiness can be among them.
func (c *GroupConfig) balancers() []kafka.GroupBalancer {
	usual := []kafka.GroupBalancer{kafka.RangeGroupBalancer{}, kafka.RoundRobinGroupBalancer{}}
	if c.Claim == nil {
		return usual
	}
	return append([]kafka.GroupBalancer{sticky{c.Claim}}, usual...)
}
