package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/segmentio/kafka-go"
)

// TopicSpec is a topic that should exist.
type TopicSpec struct {
	Name              string
	Partitions        int
	ReplicationFactor int               // 0 leaves it to the broker.
	Configs           map[string]string // As in Kafka's topic configuration: cleanup.policy, retention.ms, …
	// Update brings an existing topic to these configs and at least this many partitions. Without it an existing topic is
	// left as it is, because on a shared cluster others own it, and differences are only logged.
	Update bool
}

// EnsureTopics makes the topics that are not there. It returns when the cluster knows all of them.
func (c *Client) EnsureTopics(ctx context.Context, specs []TopicSpec) error {
	ctx, cancel := context.WithTimeout(ctx, 3*c.cfg.RequestTimeout)
	defer cancel()
	for _, s := range specs {
		err := c.createTopic(ctx, s)
		if errors.Is(err, kafka.TopicAlreadyExists) {
			err = c.reconcileTopic(ctx, s)
		}
		if err != nil {
			return c.fail(opCreateTopics, s.Name, -1, err)
		}
	}
	return nil
}

func (c *Client) createTopic(ctx context.Context, s TopicSpec) error {
	t := kafka.TopicConfig{Topic: s.Name, NumPartitions: max(s.Partitions, 1), ReplicationFactor: s.ReplicationFactor}
	if t.ReplicationFactor <= 0 {
		t.ReplicationFactor = -1
	}
	for _, k := range slices.Sorted(maps.Keys(s.Configs)) {
		t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: k, ConfigValue: s.Configs[k]})
	}
	res, err := c.kc.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{t}})
	if err != nil {
		return err
	}
	return res.Errors[s.Name]
}

func (c *Client) reconcileTopic(ctx context.Context, s TopicSpec) error {
	ps, err := c.Partitions(ctx, s.Name)
	if err != nil {
		return err
	}
	have, err := c.topicConfigs(ctx, s)
	if err != nil {
		return err
	}
	differs := map[string]string{}
	for k, want := range s.Configs {
		if have[k] != want {
			differs[k] = want
		}
	}
	if !s.Update {
		if len(differs) > 0 || len(ps[s.Name]) < s.Partitions {
			c.log.Warn("topic differs from what is wanted of it", "topic", s.Name, "partitions", len(ps[s.Name]),
				"wanted_partitions", s.Partitions, "wanted_configs", differs)
		}
		return nil
	}
	if len(differs) > 0 {
		if err := c.alterTopic(ctx, s.Name, differs); err != nil {
			return err
		}
	}
	if len(ps[s.Name]) >= s.Partitions {
		return nil
	}
	res, err := c.kc.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: s.Name, Count: int32(s.Partitions)}}})
	if err != nil {
		return err
	}
	return res.Errors[s.Name]
}

func (c *Client) topicConfigs(ctx context.Context, s TopicSpec) (map[string]string, error) {
	if len(s.Configs) == 0 {
		return nil, nil
	}
	res, err := c.kc.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: s.Name,
			ConfigNames: slices.Sorted(maps.Keys(s.Configs))}}})
	if err != nil {
		return nil, err
	}
	have := map[string]string{}
	for _, r := range res.Resources {
		if r.Error != nil {
			return nil, r.Error
		}
		for _, e := range r.ConfigEntries {
			have[e.ConfigName] = e.ConfigValue
		}
	}
	return have, nil
}

func (c *Client) alterTopic(ctx context.Context, topic string, configs map[string]string) error {
	r := kafka.IncrementalAlterConfigsRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}
	for _, k := range slices.Sorted(maps.Keys(configs)) {
		r.Configs = append(r.Configs, kafka.IncrementalAlterConfigsRequestConfig{Name: k, Value: configs[k],
			ConfigOperation: kafka.ConfigOperationSet})
	}
	res, err := c.kc.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{r}})
	if err != nil {
		return err
	}
	for _, r := range res.Resources {
		if r.Error != nil {
			return r.Error
		}
	}
	return nil
}

// Partitions lists the partitions of topics, sorted. It comes from metadata at most as old as the metadata TTL. An
// unknown topic is an error.
func (c *Client) Partitions(ctx context.Context, topics ...string) (map[string][]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	res, err := c.kc.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil, c.fail(opMetadata, fmt.Sprint(topics), -1, err)
	}
	out := make(map[string][]int32, len(res.Topics))
	for _, t := range res.Topics {
		if t.Error != nil {
			return nil, c.fail(opMetadata, t.Name, -1, t.Error)
		}
		for _, p := range t.Partitions {
			out[t.Name] = append(out[t.Name], int32(p.ID))
		}
		slices.Sort(out[t.Name])
	}
	return out, nil
}

// Topics lists the names of all topics that are not Kafka's own, sorted.
func (c *Client) Topics(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	res, err := c.kc.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, c.fail(opMetadata, "cluster", -1, err)
	}
	var names []string
	for _, t := range res.Topics {
		if !t.Internal {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
