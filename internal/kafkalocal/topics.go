package kafkalocal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
)

// Topic is one topic the broker should have.
type Topic struct {
	Name       string
	Partitions int           // Default 1. More than there are adds partitions; fewer changes nothing.
	Retention  time.Duration // By record timestamp. 0 is Kafka's seven days; below 0 keeps for ever.
	MaxBytes   int64         // Kept per partition; 0 has no limit.
	Compacted  bool
}

func (t Topic) configs() map[string]string {
	c := map[string]string{"cleanup.policy": "delete"}
	if t.Compacted {
		c["cleanup.policy"] = "compact"
	}
	switch {
	case t.Retention > 0:
		c["retention.ms"] = strconv.FormatInt(t.Retention.Milliseconds(), 10)
	case t.Retention < 0 || t.Compacted:
		c["retention.ms"] = "-1"
	default:
		// Set even where it is the default: kfake's cleaner only runs when some topic has a setting of its own.
		c["retention.ms"] = strconv.FormatInt((7 * 24 * time.Hour).Milliseconds(), 10)
	}
	c["retention.bytes"] = "-1"
	if t.MaxBytes > 0 {
		c["retention.bytes"] = strconv.FormatInt(t.MaxBytes, 10)
	}
	return c
}

// ensureTopics also wakes kfake's cleaner, which after a restart waits for a request that touches topics.
func ensureTopics(ctx context.Context, addr string, o Options) error {
	mech, err := mechanism(o.Users)
	if err != nil {
		return err
	}
	tr := &kafka.Transport{SASL: mech}
	if o.TLS != nil {
		// The broker is this very process: there is nobody to verify.
		tr.TLS = o.TLS.Clone()
		tr.TLS.InsecureSkipVerify = true
	}
	defer tr.CloseIdleConnections()
	cl := &kafka.Client{Addr: kafka.TCP(addr), Transport: tr, Timeout: topicCreationTimeout}

	create := &kafka.CreateTopicsRequest{}
	for _, t := range o.Topics {
		tc := kafka.TopicConfig{Topic: t.Name, NumPartitions: max(t.Partitions, 1), ReplicationFactor: 1}
		for k, v := range t.configs() {
			tc.ConfigEntries = append(tc.ConfigEntries, kafka.ConfigEntry{ConfigName: k, ConfigValue: v})
		}
		create.Topics = append(create.Topics, tc)
	}
	res, err := cl.CreateTopics(ctx, create)
	if err != nil {
		return fmt.Errorf("create topics on embedded Kafka: %w", err)
	}
	for _, t := range o.Topics {
		err := res.Errors[t.Name]
		if errors.Is(err, kafka.TopicAlreadyExists) {
			err = updateTopic(ctx, cl, t)
		}
		if err != nil {
			return fmt.Errorf("create topic %s on embedded Kafka: %w", t.Name, err)
		}
	}
	return nil
}

// updateTopic brings a topic of an earlier start to what is configured now.
func updateTopic(ctx context.Context, cl *kafka.Client, t Topic) error {
	r := kafka.IncrementalAlterConfigsRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: t.Name}
	for k, v := range t.configs() {
		r.Configs = append(r.Configs, kafka.IncrementalAlterConfigsRequestConfig{
			Name: k, Value: v, ConfigOperation: kafka.ConfigOperationSet})
	}
	res, err := cl.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{r}})
	if err != nil {
		return err
	}
	for _, r := range res.Resources {
		if r.Error != nil {
			return r.Error
		}
	}
	md, err := cl.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{t.Name}})
	if err != nil {
		return err
	}
	if len(md.Topics) != 1 || md.Topics[0].Error != nil || len(md.Topics[0].Partitions) >= t.Partitions {
		return nil
	}
	parts, err := cl.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: t.Name, Count: int32(t.Partitions)}}})
	if err != nil {
		return err
	}
	return parts.Errors[t.Name]
}

// mechanism logs the broker's own client in, as the first user whose mechanism needs no more than a password.
func mechanism(users []User) (sasl.Mechanism, error) {
	if len(users) == 0 {
		return nil, nil
	}
	for _, u := range users {
		if u.Mechanism == "PLAIN" {
			return plain.Mechanism{Username: u.Name, Password: u.Password}, nil
		}
	}
	return nil, errors.New("embedded Kafka with users makes topics as a PLAIN user: name one")
}
