//go:build !linux && !darwin

package kafkalocal

import "errors"

type dirLock struct{}

func lockDir(string) (*dirLock, error) {
	return nil, errors.New("embedded Kafka keeps a data directory on Linux and macOS only")
}

func (*dirLock) release() {}

func freeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }
