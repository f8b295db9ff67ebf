package kafka

import (
	"context"

	"github.com/segmentio/kafka-go"
)

// GroupIsEmpty says that nobody is a member of a consumer group at present, or that there is none of that name. Whoever was
// killed stays a member for its session timeout.
func (c *Client) GroupIsEmpty(ctx context.Context, group string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*c.cfg.RequestTimeout)
	defer cancel()
	res, err := c.kc.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return false, c.fail(opDescribe, group, -1, err)
	}
	// The state says it. Members' own words, which the library reads too, may be of a version that it cannot read.
	for _, g := range res.Groups {
		switch g.GroupState {
		case "Empty", "Dead":
			return true, nil
		case "":
			return false, c.fail(opDescribe, group, -1, g.Error)
		}
	}
	return false, nil
}
