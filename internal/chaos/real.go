package chaos

import (
	"context"
	"errors"
)

const (
	brokerReal  = "real"
	realBrokers = 3
)

func startReal(context.Context, string, []*kafkaProxy) (cluster, error) {
	return nil, errors.New("not yet")
}
