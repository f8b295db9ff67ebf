package app

import (
	"testing"
	"time"
)

func TestCatchingUpIsNoTrouble(t *testing.T) {
	var c catchingUp
	now := time.Now()
	lag := 7 * 24 * time.Hour
	for range 100 {
		if !c.gains(lag, now) {
			t.Fatal("a backlog that shrinks was called trouble")
		}
		lag, now = lag-time.Hour, now.Add(time.Second)
	}
	for range 59 {
		lag, now = lag+time.Second, now.Add(time.Second)
		c.gains(lag, now)
	}
	if c.gains(lag+time.Minute, now.Add(time.Minute)) {
		t.Error("lag that only grows was called catching up")
	}
}
